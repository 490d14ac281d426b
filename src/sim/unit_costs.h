// SPDX-License-Identifier: Apache-2.0
// One time per kind of action, the same everywhere: what the papers' formulas assume.
#pragma once

#include "sim/costs.h"

namespace penstock::sim {

struct UnitTimes {
  Seconds forward = 1;
  Seconds backward = 2;
  Seconds input = 1;
  Seconds weight = 1;
  Seconds transfer = 0;  // a pure delay between devices: it occupies nothing
  Seconds copy = 1;      // of a whole record, one way; of a part in proportion
  Seconds visit = 0;     // of the vocabulary (LOSS)

  bool operator==(const UnitTimes&) const = default;
};

class UnitCosts final : public Costs {
 public:
  // Throws InputError naming the flag whose value is negative or not finite.
  explicit UnitCosts(const UnitTimes& times = {}, const RecordBytes& record = {});

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(int stage, int micro_batch, int slice) const override;

 private:
  UnitTimes times_;
  RecordBytes record_;
};

}  // namespace penstock::sim
