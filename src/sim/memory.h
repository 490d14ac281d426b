// SPDX-License-Identifier: Apache-2.0
// Bytes of a device over time, by category. Weights, gradients and optimizer state that do not change during
// a step are not counted here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "schedule/timeline.h"
#include "sim/costs/costs.h"

namespace penstock::sim {

enum class Held : std::uint8_t {
  Records,  // from the start of F to the end of B or I; without what is offloaded, from the start of the
            // compute op that waits for the copy out to where the copy in is issued
  WeightRecords,  // from the end of I to the end of W
  KvGradients,    // of slice k: from the start of the micro-batch's first backward on the stage to the end of
                  // k's own
  Queues,         // messages that have arrived, until their consumer starts
  Buffers,        // messages on their way, at both ends: from the start of the send until they have arrived
                  // and the receive is posted, and from the posting of the receive until they have arrived
  Logits,         // a tile while F runs, the kept gradient of the loss from then to B or I
  Transient,      // while an action runs: all else that it takes, at its most; and what one stage of the
                  // device hands to another, until that runs
  Weights,        // of a stage that releases them: from where the gather is issued to where the release is
  Gradients,  // of such a stage: from the start of the first op that contributes to the start of the op that
              // waits for their REDUCE_GRAD
};
inline constexpr int kHeldKinds = 9;
std::string_view name_of(Held held);  // "records", "weight_records", ..., "gradients"

using HeldBytes = std::array<Bytes, kHeldKinds>;  // [category]
Bytes total(const HeldBytes& bytes);

// From this time on, until the next sample.
struct MemorySample {
  Seconds time = 0;
  HeldBytes bytes{};
};

struct DeviceMemory {
  Bytes peak = 0;       // greatest total
  HeldBytes at_peak{};  // what it is made of; the first time it is reached
  HeldBytes peaks{};    // of each category by itself
  HeldBytes at_end{};   // all 0 when the program is legal
  Bytes away_peak = 0;  // offloaded, not in the above: from where the copy out is issued to the start of
                        // the compute op that waits for the copy in
  Bytes temporary = 0;  // greatest of an action's temporaries, which its Transient bytes need not all be
  std::vector<MemorySample> samples;
};

// One device of a program and its timeline, simulated or measured. What comes and goes at the same instant
// does not count. Samples are left out unless asked for: they are many.
DeviceMemory account_memory(const schedule::Program& program, const schedule::Timeline& timeline, int device,
                            const Costs& costs, bool keep_samples = false);

}  // namespace penstock::sim
