// SPDX-License-Identifier: Apache-2.0
// The settings that a run's numerical results depend on, and how their changes affect a resumed run.
//
// Changes of model, precision or sample order are refused: the state does not fit. Others (learning rate,
// slices, threads, batch, ...) are allowed with a remark: the bits differ from those of an uninterrupted run.
// Devices, replicas, tensor-parallel ranks, schedules, transports, timeouts, evaluations and checkpoints
// change no bit and are not among the settings, except the order in which a schedule adds up gradients, and
// with context exchange.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/run.h"
#include "train/checkpoint/facts.h"

namespace penstock::train {

// Settings that are not keys of run files.
inline constexpr const char* kGradientOrder = "schedule.gradient_order";  // follows from the schedule
// Where context exchange splits the sums of attention: follows from the schedule, and from the policy, since
// a backward that repeats attention splits them elsewhere than its forward.
inline constexpr const char* kExchangedSums = "schedule.exchanged_sums";

// `threads`: per rank.
Settings settings_of(const run::Run& run, int threads);

struct SettingChange {
  std::string name;
  std::string was, is;
  bool fits = true;  // the saved state can be used
};
std::string text_of(const SettingChange& change);  // "train.lr = 0.1 where the checkpoint's run had 0.2"

// Ignores settings that only one side has, the paths of data, whose content is compared elsewhere, and the
// path of weights, which only a new run reads.
std::vector<SettingChange> changes(const Settings& was, const Settings& is);

// The paths of data that differ.
std::vector<SettingChange> moved_data(const Settings& was, const Settings& is);

// Whether the change affects the order of samples in a window of data.packing = "balanced".
bool orders_a_window(const SettingChange& change);

// numerics.replicas of a checkpoint; 0 when not recorded.
std::int64_t replicas_of(const Settings& settings);

// numerics.tensor of a checkpoint; 1 when not recorded, its value in such checkpoints.
std::int64_t tensor_shards_of(const Settings& settings);

// The threads per rank of a checkpoint; 0 when not recorded.
int threads_of(const Settings& settings);

}  // namespace penstock::train
