// SPDX-License-Identifier: Apache-2.0
// Copies of a small run's state in a folder, and what is found of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "comm/single.h"
#include "nn/tensor_checks.h"
#include "train/checkpoint/host_copies.h"
#include "train/checkpoint/state_shares.h"
#include "train/saved_run.h"

namespace penstock::testing {

using State = std::map<std::string, at::Tensor>;

inline const std::string kNumber = "00000000000000cd";  // of the run

// The state after each of so many steps, which are copied whenever `every` divides them; as of a start that
// goes on from step `from`. `look` is called before the first and after each; may be empty.
inline std::vector<State> copied_steps(const run::Run& run, const std::string& directory, std::int64_t every,
                                       std::int64_t steps, std::int64_t from = 0,
                                       const std::function<void()>& look = {}) {
  std::vector<State> states(static_cast<std::size_t>(steps));
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const auto files = train::checkpoint_files(run.shape());
    train::HostCopies copies({directory, every, kNumber}, files,
                             train::shares_of_state(files, run.shape(), trainer),
                             facts_of(run, from, trainer), comm::World(world));
    if (look) look();
    for (std::int64_t step = 1; step <= steps; ++step) {
      step_on_drawn_tokens(run, trainer, world.rank(), step);
      copies.after_step(step, [&] { return facts_of(run, step, trainer); });
      world.barrier();
      const std::lock_guard lock(mutex);
      if (look) look();
      collect_state(trainer, states[static_cast<std::size_t>(step) - 1]);
    }
  });
  return states;
}

inline std::optional<train::FoundCopies> found_in(const std::string& directory, std::int64_t after = 0,
                                                  const std::string& number = kNumber) {
  static const auto alone = comm::make_single();
  return train::find_copies(directory, number, after, comm::World(*alone));
}

inline State loaded_from(const train::FoundCopies& found, const run::Run& run) {
  State state;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    train::load_state(*found.state, found.facts, trainer);
    const std::lock_guard lock(mutex);
    collect_state(trainer, state);
  });
  return state;
}

inline void expect_same(const State& got, const State& wanted) {
  ASSERT_FALSE(wanted.empty());
  for (const auto& [name, tensor] : got) {
    if (wanted.contains(name)) expect_same_bits(tensor, wanted.at(name), name);
  }
}

inline std::vector<std::filesystem::path> files_in(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace penstock::testing
