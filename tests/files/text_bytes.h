// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace penstock::files {

// Those of a text that outlives the result.
inline std::span<const std::byte> text_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace penstock::files
