// SPDX-License-Identifier: Apache-2.0
// Metadata of a copy of one rank's share of a run's state (host_copies.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"

namespace penstock::train {

// Ranges of a tensor's elements with equal length and stride, such as the rows of a block of columns.
struct RangeRun {
  std::int64_t first = 0;   // first element of the first range
  std::int64_t count = 0;   // elements per range
  std::int64_t stride = 0;  // elements from the start of one range to the next
  std::int64_t times = 1;
  friend bool operator==(const RangeRun&, const RangeRun&) = default;
};

// A part of a tensor; its bytes are those of its ranges in order.
struct CopiedTensor {
  std::string name;
  files::ElementType type = files::ElementType::F32;
  std::vector<std::int64_t> shape;  // of the whole tensor
  std::vector<RangeRun> runs;       // ascending, without overlap
  std::uint64_t bytes() const;
  std::uint64_t whole_bytes() const;
  friend bool operator==(const CopiedTensor&, const CopiedTensor&) = default;
};

struct StateCopy {
  std::string run;    // run_number.h
  std::string start;  // program start that wrote it: 16 hexadecimal digits
  std::int64_t step = 0;
  int ranks = 1, rank = 0;  // world size, and the rank that wrote it
  std::string checkpoint;   // facts.h as JSON on rank 0; else empty
  std::vector<CopiedTensor> tensors;
  std::uint64_t sum = 0;  // XXH3 of the bytes
  std::uint64_t bytes() const;
  friend bool operator==(const StateCopy&, const StateCopy&) = default;
};

std::string to_json(const StateCopy& facts);

// Throws InputError that begins with `origin` if a member is missing, of another type or out of range, or a
// range lies outside its tensor.
StateCopy parse_state_copy(std::string_view text, std::string_view origin);

}  // namespace penstock::train
