// SPDX-License-Identifier: Apache-2.0
// The manual page penstock(1), as roff text.
#pragma once

#include <string>
#include <string_view>

#include "cli/manual/interface.h"

namespace penstock::cli {

std::string man_page(const Interface& interface, std::string_view version);

}  // namespace penstock::cli
