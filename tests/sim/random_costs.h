// SPDX-License-Identifier: Apache-2.0
// Costs for tests: a time for every (device, kind, stage, micro-batch, slice) drawn from a seed.
#pragma once

#include <functional>
#include <string>

#include "schedule/program_text.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

// Lists of devices, of two stages and one micro-batch of two slices.
inline schedule::Program two_slices(const std::string& lists) {
  return schedule::parse_program("penstock program 1\nname x\nstages 2\nslices 1,1\n" + lists, "x");
}

class RandomCosts : public Costs {
 public:
  explicit RandomCosts(std::uint64_t seed, Transfer transfer = {}) : seed_(seed), transfer_(transfer) {}

  Seconds of(int device, int kind, int stage, int micro_batch, int slice) const {
    std::uint64_t h = seed_;
    for (const int part : {device, kind, stage, micro_batch, slice}) {
      h = (h ^ static_cast<std::uint64_t>(part + 1)) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    }
    return static_cast<double>(h % 1000) / 100;
  }

  Seconds seconds(int device, std::uint32_t, const schedule::Op& op) const override {
    if (!is_action(op.kind)) return 0;
    return of(device, static_cast<int>(op.kind), op.key.stage, op.key.micro_batch, op.key.slice);
  }
  Transfer transfer(int, std::uint32_t, const schedule::Op&) const override { return transfer_; }
  RecordBytes record(const schedule::Key& key) const override {
    return {1000 + key.stage, 2000 + key.micro_batch, 300 + key.slice};
  }

 private:
  std::uint64_t seed_;
  Transfer transfer_;
};

}  // namespace penstock::sim
