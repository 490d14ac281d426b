// SPDX-License-Identifier: Apache-2.0
// Elements of stored tensors from one floating-point format to another.
#pragma once

#include <cstddef>
#include <span>

#include "files/safetensors.h"

namespace penstock::files {

bool is_float(ElementType type);  // F64, F32, F16 or BF16: what convert_elements knows

// Writes every element of `source` to `target` in its format, rounded to nearest, ties to even. Neither needs
// to be aligned; as many elements in both. Equal formats are copied bit by bit.
void convert_elements(std::span<const std::byte> source, ElementType source_type, std::span<std::byte> target,
                      ElementType target_type);

}  // namespace penstock::files
