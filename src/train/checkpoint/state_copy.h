// SPDX-License-Identifier: Apache-2.0
// What a copy of one rank's share of a run's state says of itself (host_copies.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"

namespace penstock::train {

// Equal ranges of a tensor's elements at equal distances, such as the rows of a block of columns.
struct RangeRun {
  std::int64_t first = 0;   // element of the first range
  std::int64_t count = 0;   // elements of each
  std::int64_t stride = 0;  // from the beginning of one to that of the next
  std::int64_t times = 1;
  friend bool operator==(const RangeRun&, const RangeRun&) = default;
};

// A part of a tensor; its bytes are those of its ranges, one after another.
struct CopiedTensor {
  std::string name;
  files::ElementType type = files::ElementType::F32;
  std::vector<std::int64_t> shape;  // of the whole tensor
  std::vector<RangeRun> runs;       // ascending, none overlaps another
  std::uint64_t bytes() const;
  std::uint64_t whole_bytes() const;
  friend bool operator==(const CopiedTensor&, const CopiedTensor&) = default;
};

struct StateCopy {
  std::string run;    // run_number.h
  std::string start;  // of the program that wrote it: 16 hexadecimal digits
  std::int64_t step = 0;
  int ranks = 1, rank = 0;  // which wrote it
  std::string checkpoint;   // facts.h as JSON; of rank 0, else empty
  std::vector<CopiedTensor> tensors;
  std::uint64_t sum = 0;  // XXH3 of the bytes
  std::uint64_t bytes() const;
  friend bool operator==(const StateCopy&, const StateCopy&) = default;
};

std::string to_json(const StateCopy& facts);

// Throws InputError that begins with `origin`: members are missing, of another type or out of range, or
// ranges that are not within their tensor.
StateCopy parse_state_copy(std::string_view text, std::string_view origin);

}  // namespace penstock::train
