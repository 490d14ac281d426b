// SPDX-License-Identifier: Apache-2.0
// The JSON header of a safetensors file: validated reading, and writing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"

namespace penstock::files {

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in byte order; their bytes are parts of `data`
  Metadata metadata;
};

// `data` holds all bytes after the header. Throws InputError that begins with `origin`.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::span<const std::byte> data,
                                           std::string_view origin);

// For tensors stored back to back in the given order; padded with blanks to a multiple of 8 bytes.
std::string print_safetensors_header(std::span<const StoredTensor> tensors, const Metadata& metadata);

// Size in bytes of a tensor of this shape; nullopt if the product overflows or a length is negative.
std::optional<std::uint64_t> bytes_of_shape(const std::vector<std::int64_t>& shape, ElementType type);

}  // namespace penstock::files
