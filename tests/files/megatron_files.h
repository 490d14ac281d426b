// SPDX-License-Identifier: Apache-2.0
// Megatron's .bin and .idx files written by hand, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::testing {

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What an index consists of; a test changes a part and prints it.
struct IdxFields {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t dtype = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> documents{0};
  std::uint64_t sequences = 0;
  std::uint64_t entries = 0;

  std::string bytes() const {
    std::string idx = magic;
    put(idx, version);
    put(idx, dtype);
    put(idx, sequences);
    put(idx, entries);
    for (const std::int32_t length : lengths) put(idx, length);
    for (const std::int64_t offset : offsets) put(idx, offset);
    for (const std::int64_t document : documents) put(idx, document);
    return idx;
  }
};

// Documents of one sequence each, of tokens of two bytes.
inline IdxFields idx_of(const std::vector<std::int32_t>& lengths) {
  IdxFields fields;
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths) {
    fields.lengths.push_back(length);
    fields.offsets.push_back(offset);
    fields.documents.push_back(static_cast<std::int64_t>(fields.lengths.size()));
    offset += 2 * length;
  }
  fields.sequences = lengths.size();
  fields.entries = lengths.size() + 1;
  return fields;
}

inline std::string bin_of(const std::vector<std::uint16_t>& tokens) {
  std::string bin;
  for (const std::uint16_t token : tokens) put(bin, token);
  return bin;
}

}  // namespace penstock::testing
