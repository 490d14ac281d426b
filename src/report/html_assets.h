// SPDX-License-Identifier: Apache-2.0
// The files of src/report/assets, embedded when the library is built (cmake/Embed.cmake).
#pragma once

#include <string_view>

namespace penstock::report {

// The contents of an asset by its file name; it must exist.
std::string_view asset(std::string_view name);

}  // namespace penstock::report
