// SPDX-License-Identifier: Apache-2.0
// penstock(1) as the text that man formats.
#pragma once

#include <string>
#include <string_view>

#include "cli/manual/interface.h"

namespace penstock::cli {

std::string man_page(const Interface& interface, std::string_view version);

}  // namespace penstock::cli
