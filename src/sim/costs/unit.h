// SPDX-License-Identifier: Apache-2.0
// One time per kind of action, the same everywhere: what the papers' formulas assume. With a share of
// attention it is the mean over the slices.
#pragma once

#include <vector>

#include "sim/costs/costs.h"

namespace penstock::sim {

// Bytes of a schedule's record, without a model, when records are offloaded.
inline constexpr Bytes kUnitRecord = 1'000'000;

struct UnitTimes {
  Seconds forward = 1;
  Seconds backward = 2;
  Seconds input = 1;
  Seconds weight = 1;
  Seconds transfer = 0;  // a pure delay between devices: it occupies nothing
  Seconds copy = 1;      // of a whole record, one way; of a part in proportion
  Seconds visit = 0;     // of the vocabulary (LOSS)
  double attention = 0;  // share of F, B and I, mean over a micro-batch's slices: slice i's is as i + 1/2
  int layers = 4;        // of a stage

  bool operator==(const UnitTimes&) const = default;
};

class UnitCosts final : public Costs {
 public:
  // Throws InputError naming the flag whose value is negative or not finite.
  // `slices` of each micro-batch; of no use without attention.
  explicit UnitCosts(const UnitTimes& times = {}, const RecordBytes& record = {},
                     std::vector<int> slices = {});

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;
  bool holds_bytes() const override { return record_ != RecordBytes{}; }
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;

 private:
  Seconds mean(schedule::OpKind kind) const;  // of an action
  UnitTimes times_;
  std::vector<int> slices_;
  RecordBytes record_;
};

}  // namespace penstock::sim
