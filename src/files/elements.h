// SPDX-License-Identifier: Apache-2.0
// Conversion of stored tensors between floating-point formats.
#pragma once

#include <cstddef>
#include <span>

#include "files/safetensors.h"

namespace penstock::files {

bool is_float(ElementType type);  // F64, F32, F16 or BF16: the types of convert_elements

// Converts every element of `source` to the format of `target`, rounding to nearest, ties to even. Neither
// needs to be aligned; both hold the same number of elements. Equal formats are copied bit by bit. Returns
// how many finite elements are too large for the target and became infinite.
std::size_t convert_elements(std::span<const std::byte> source, ElementType source_type,
                             std::span<std::byte> target, ElementType target_type);

}  // namespace penstock::files
