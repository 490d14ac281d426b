// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::files {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace penstock::files
