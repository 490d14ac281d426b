// SPDX-License-Identifier: Apache-2.0
// Memory and time of programs that offload, against the formula of docs/memory.md, "Offloading".
#include <gtest/gtest.h>

#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
#include "sim/random_costs.h"
#include "sim/result.h"

namespace penstock::sim {
namespace {

using schedule::Program;

constexpr Bytes kRecord = 1000;

// Copies of any length, computation as another source says.
class WithCopies final : public Costs {
 public:
  WithCopies(const Costs& base, Seconds copy) : base_(base), copy_(copy) {}
  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override {
    const bool copies = op.kind == schedule::OpKind::Offload || op.kind == schedule::OpKind::Reload;
    return copies ? copy_ : base_.seconds(device, index, op);
  }
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override {
    return base_.transfer(device, index, send);
  }
  RecordBytes record(const schedule::Key&) const override { return {.record = kRecord}; }

 private:
  const Costs& base_;
  Seconds copy_;
};

Program offloaded(const char* name, const schedule::Request& request, Bytes leaving) {
  return lower(schedule::generate(name, request),
               {.offload_bytes = [=](const schedule::Key&) { return leaving; }});
}

Bytes records(const DeviceResult& device) {
  return device.memory.peaks[static_cast<std::size_t>(Held::Records)];
}

Bytes formula(const DeviceResult& device, Bytes leaving) {
  const int in_flight = device.in_flight.peak_until_input;
  return in_flight * kRecord - std::max(0, in_flight - 4) * leaving;
}

TEST(OffloadMemory, PeakIsTheLineInTheShareWhateverTheTimes) {
  for (const Bytes leaving : {Bytes{0}, Bytes{1}, Bytes{400}, kRecord}) {
    for (const int p : {2, 4, 6}) {
      for (const Program& program : {offloaded("slimpipe", schedule::request(p, 3, 8), leaving),
                                     offloaded("slimpipe", schedule::request(p, 2, 12, 2), leaving),
                                     offloaded("1f1b", schedule::request(p, 3 * p), leaving),
                                     offloaded("interleaved", schedule::request(p, 3 * p, 1, 2), leaving),
                                     offloaded("gpipe", schedule::request(p, 3 * p), leaving),
                                     offloaded("zb-h2", schedule::request(p, 3 * p), leaving)}) {
        for (const Seconds copy : {0.0, 1.5, 20.0}) {
          for (const int seed : {1, 2}) {
            const RandomCosts random(static_cast<std::uint64_t>(seed), {0.5, 0.5});
            const Result result = evaluate(program, WithCopies(random, copy), {.imbalance = false});
            ASSERT_FALSE(result.deadlock);
            for (const DeviceResult& device : result.devices) {
              EXPECT_EQ(records(device), formula(device, leaving)) << program.name << " p" << p;
            }
          }
        }
      }
    }
  }
}

TEST(OffloadMemory, WhatIsAwayIsNeverMoreThanWhatIsInFlightAndEndsAtNothing) {
  for (const schedule::Generator& generator : schedule::generators()) {
    for (const Bytes leaving : {Bytes{400}, kRecord}) {
      const UnitCosts unit;
      const Result result =
          evaluate(offloaded(std::string(generator.name).c_str(), schedule::request(4, 12), leaving),
                   WithCopies(unit, 1));
      for (const DeviceResult& device : result.devices) {
        const int in_flight = device.in_flight.peak_until_input;
        EXPECT_LE(device.memory.away_peak, in_flight * leaving) << generator.name;
        EXPECT_LE(records(device), in_flight * kRecord) << generator.name;
        EXPECT_EQ(device.memory.at_end, HeldBytes{}) << generator.name;
      }
    }
  }
}

// "Free of cost while α·u / bandwidth ≤ time of one F+B of the record (steady state) and one F (warm-up)."
TEST(OffloadTime, CopiesThatFitAForwardCostNothing) {
  const UnitCosts unit({.forward = 2, .backward = 4});
  const Program without = lower(schedule::generate("slimpipe", schedule::request(4, 4, 8)));
  const Program with = offloaded("slimpipe", schedule::request(4, 4, 8), kRecord);
  const Seconds plain = evaluate(without, unit).makespan;
  EXPECT_EQ(evaluate(with, WithCopies(unit, 0.5)).makespan, plain);
  EXPECT_EQ(evaluate(with, WithCopies(unit, 2)).makespan, plain);
  EXPECT_GT(evaluate(with, WithCopies(unit, 7)).makespan, plain);
}

TEST(OffloadTime, SlowCopiesAreToldAsCopyWait) {
  const UnitCosts unit;
  const Result result =
      evaluate(offloaded("slimpipe", schedule::request(2, 2, 8), kRecord), WithCopies(unit, 9));
  for (const DeviceResult& device : result.devices) {
    EXPECT_GT(device.time.idle.copy, 0.0);
    EXPECT_NEAR(device.time.busy + device.time.idle.total(), result.makespan, 1e-9 * result.makespan);
  }
}

}  // namespace
}  // namespace penstock::sim
