// SPDX-License-Identifier: Apache-2.0
// Finds the compute ops of a (stage, micro-batch, slice) in a program. Valid only for the program it was
// built from.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/program.h"

namespace penstock::schedule {

struct Place {
  std::int32_t device = -1;  // -1 if no device has it
  std::uint32_t op = 0;      // index into the device's ops

  bool exists() const { return device >= 0; }
};

class ProgramIndex {
 public:
  // Every number must be in the program's range (check() reports violations). If a key occurs twice, the last
  // one counts.
  explicit ProgramIndex(const Program& program);

  // Returns a Place that does not exist if a number is out of range.
  Place forward(const Key& key) const { return look_up(forward_, key); }
  // The B or I.
  Place backward(const Key& key) const { return look_up(backward_, key); }

  // The devices that run the stage, ascending; two for DualPipe's replicas.
  const std::vector<int>& devices_of(int stage) const { return devices_of_[stage]; }

 private:
  std::size_t cell(const Key& key) const;  // kNone if out of range
  Place look_up(const std::vector<Place>& places, const Key& key) const;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  int stages_ = 0;
  std::vector<std::size_t> first_cell_;  // [micro_batch] offset in a stage's row; one more at the end
  std::vector<Place> forward_;           // [stage * cells per stage + first_cell_[micro_batch] + slice]
  std::vector<Place> backward_;
  std::vector<std::vector<int>> devices_of_;
};

}  // namespace penstock::schedule
