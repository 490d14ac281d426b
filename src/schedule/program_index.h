// SPDX-License-Identifier: Apache-2.0
// Where in a program the compute ops of a (stage, micro-batch, slice) are. Valid for the program it was built
// from.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

struct Place {
  std::int32_t device = -1;  // -1: no device has it
  std::uint32_t op = 0;      // index into the device's ops

  bool exists() const { return device >= 0; }
};

class ProgramIndex {
 public:
  // Every number must be in the program's range (check() finds those that are not). Of duplicates the last
  // counts.
  explicit ProgramIndex(const Program& program);

  // Nowhere when a number is out of range.
  Place forward(const Key& key) const { return look_up(forward_, key); }
  // The B or the I.
  Place backward(const Key& key) const { return look_up(backward_, key); }

  // Devices that run the stage, ascending; two for DualPipe's replicas.
  const std::vector<int>& devices_of(int stage) const { return devices_of_[stage]; }

 private:
  std::size_t cell(const Key& key) const;  // kNone when out of range
  Place look_up(const std::vector<Place>& places, const Key& key) const;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  int stages_ = 0;
  std::vector<std::size_t> first_cell_;  // of each micro-batch in a stage's row; one more at the end
  std::vector<Place> forward_;           // [stage * cells of a stage + first_cell_[micro_batch] + slice]
  std::vector<Place> backward_;
  std::vector<std::vector<int>> devices_of_;
};

}  // namespace penstock::schedule
