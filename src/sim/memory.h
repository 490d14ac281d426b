// SPDX-License-Identifier: Apache-2.0
// Bytes of a device over time, by category. Weights, gradients and optimizer states that exist during the
// whole step are not counted here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/memory/category.h"
#include "schedule/timeline.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

// What holds memory during a step. Finer than the categories of predictions and measurements (category_of).
enum class Held : std::uint8_t {
  Records,  // from the start of F to the end of B or I; the offloaded part is not counted from the start of
            // the compute op that waits for the OFFLOAD to the issue of the RELOAD
  WeightRecords,  // from the end of I to the end of W
  KvGradients,    // of slice k: from the micro-batch's first backward on the stage (from its end if that
                  // action's `growth` is known, else from its start) to the end of k's own backward
  Queues,         // arrived messages, until their consumer starts
  Buffers,        // messages in flight, at both ends: from the start of the send until they have arrived and
                  // the receive is posted, and from the posting of the receive until they have arrived
  Logits,         // a tile while F or LOSS runs, then the kept loss gradient until the end of B or I
  Transient,      // peak of all other memory of a running action; and tensors that one stage of the device
                  // hands to another, until that one starts
  Weights,        // of a stage that releases them: from the issue of the gather to that of the release
  Gradients,  // of such a stage: from the start of the first op that contributes to the start of the op that
              // waits for their REDUCE_GRAD
};
inline constexpr int kHeldKinds = 9;
std::string_view name_of(Held held);  // "records", "weight_records", ..., "gradients"
model::Category category_of(Held held);

using HeldBytes = std::array<Bytes, kHeldKinds>;  // [category]
Bytes total(const HeldBytes& bytes);

// Valid from `time` until the next sample.
struct MemorySample {
  Seconds time = 0;
  HeldBytes bytes{};
};

struct MemoryUse {
  Bytes peak = 0;       // greatest total
  HeldBytes at_peak{};  // its categories, when it is first reached
  HeldBytes peaks{};    // each category's own peak
  HeldBytes at_end{};   // all 0 if the program is legal
  Bytes away_peak = 0;  // offloaded bytes, not in the above: from the issue of the OFFLOAD to the start of
                        // the compute op that waits for the RELOAD
  Bytes temporary = 0;  // maximum of an action's temporaries; Transient need not include all of them
  std::vector<MemorySample> samples;
};

// Accounts for one device of a program with a simulated or measured timeline. Memory that is allocated and
// freed at the same instant does not count. Returns samples only with `keep_samples`: they are many.
MemoryUse account_memory(const schedule::Program& program, const schedule::Timeline& timeline, int device,
                         const Costs& costs, bool keep_samples);

}  // namespace penstock::sim
