// SPDX-License-Identifier: Apache-2.0
// Values as typed on a command line: text needs no quotes, lists are 7,5 or [7, 5].
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace penstock {

// A number or truth value if the word parses as one, else text.
Scalar typed_scalar(std::string_view text);
std::vector<Scalar> typed_list(std::string_view text);

// The same, but words stay text even if they look like numbers.
std::vector<Scalar> typed_words(std::string_view text);

// The first integer, of a list or alone, that has more than 64 bits: as a scalar it would be a real number,
// of other digits than those typed.
std::optional<std::string_view> typed_beyond_64_bits(std::string_view text);

}  // namespace penstock
