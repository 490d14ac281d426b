// SPDX-License-Identifier: Apache-2.0
// One time per kind of action, the same everywhere, as the papers' formulas assume. With a share of attention
// it is the mean over the slices.
#pragma once

#include <vector>

#include "sim/costs/costs.h"

namespace penstock::sim {

// Bytes of a record if a schedule without a model offloads records.
inline constexpr Bytes kUnitRecord = 1'000'000;

struct UnitTimes {
  Seconds forward = 1;
  Seconds backward = 2;
  Seconds input = 1;
  Seconds weight = 1;
  Seconds transfer = 0;  // a pure delay between devices: it does not occupy the link
  Seconds copy = 1;      // of a whole record, one way; a part takes its fraction
  Seconds visit = 0;     // LOSS, under vocabulary parallelism
  double attention = 0;  // share of F, B and I, mean over the slices; slice i is proportional to i + 1/2
  int layers = 4;        // per stage

  bool operator==(const UnitTimes&) const = default;
};

class UnitCosts final : public Costs {
 public:
  // `slices`: one per micro-batch, used only with attention. Throws InputError with the flag whose time is
  // negative or not finite.
  explicit UnitCosts(const UnitTimes& times = {}, const RecordBytes& record = {},
                     std::vector<int> slices = {});

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;
  bool holds_bytes() const override { return record_ != RecordBytes{}; }
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;

 private:
  Seconds mean(schedule::OpKind kind) const;  // for action kinds
  UnitTimes times_;
  std::vector<int> slices_;
  RecordBytes record_;
};

}  // namespace penstock::sim
