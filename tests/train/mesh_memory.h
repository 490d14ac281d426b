// SPDX-License-Identifier: Apache-2.0
// Predicted and measured memory of runs with several ranks to a pipeline device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <sstream>
#include <vector>

#include "backend/ledger.h"
#include "train/small_run.h"

namespace penstock::testing {

// Peaks of one pipeline device: of each category, and of the sum.
struct MeasuredPeaks {
  std::array<Bytes, model::kTensorCategories> of{};
  Bytes total = 0;

  Bytes operator[](model::Category category) const { return of[static_cast<std::size_t>(category)]; }
  void add(const backend::Ledger& ledger) {
    for (std::size_t i = 0; i < of.size(); ++i)
      of[i] = std::max(of[i], ledger.peak(static_cast<model::Category>(i)));
    total = std::max(total, ledger.peak_total());
  }
};

// Of two steps, of which the second finds the shares of gradients that the first has left: the greatest of
// each device's ranks, and of those that are first in their tensor group.
struct MeasuredMemory {
  std::vector<MeasuredPeaks> greatest, first;
};

inline MeasuredMemory memory_of_steps(const run::Run& run) {
  const auto devices = static_cast<std::size_t>(run.devices());
  MeasuredMemory memory{std::vector<MeasuredPeaks>(devices), std::vector<MeasuredPeaks>(devices)};
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    for (const int step : {1, 2})
      trainer.step(step, tokens_of(run, world.rank(), drawn_batches(run, static_cast<std::uint64_t>(step))));
    const mesh::Coordinates at = run.mesh.coordinates_of(world.rank());
    const std::lock_guard lock(mutex);
    memory.greatest[static_cast<std::size_t>(at.pipeline)].add(trainer.ledger());
    if (at.tensor == 0) memory.first[static_cast<std::size_t>(at.pipeline)].add(trainer.ledger());
  });
  return memory;
}

// `transient`: how far that category may be off, of what is measured.
inline void expect_predicted(const model::MemoryPeaks& predicted, const MeasuredPeaks& measured,
                             double transient) {
  using model::Category;
  EXPECT_EQ(predicted.weights, measured[Category::Weights]);
  EXPECT_EQ(predicted.gradients, measured[Category::Gradients]);
  EXPECT_EQ(predicted.optimizer, measured[Category::Optimizer]);
  EXPECT_EQ(predicted.activations, measured[Category::Activations]);
  EXPECT_EQ(predicted.weight_records, measured[Category::WeightRecords]);
  EXPECT_EQ(predicted.kv_gradients, measured[Category::KvGradients]);
  EXPECT_EQ(predicted.logits, measured[Category::Logits]);
  const auto over = [](Bytes part, Bytes whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  EXPECT_NEAR(over(predicted.transient, measured[Category::Transient]), 1, transient)
      << predicted.transient << " and " << measured[Category::Transient];
  EXPECT_NEAR(over(predicted.total(), measured.total), 1, 0.02)
      << predicted.total() << " and " << measured.total << ", transfers " << predicted.transfers << " and "
      << measured[Category::Transfers];
}

inline void expect_predicted(const run::Run& run) {
  const MeasuredMemory memory = memory_of_steps(run);
  for (std::size_t device = 0; device < memory.greatest.size(); ++device) {
    SCOPED_TRACE("device " + std::to_string(device));
    expect_predicted(run.predicted[device], memory.greatest[device], 0.05);
    EXPECT_EQ(memory.first[device][model::Category::Activations],
              memory.greatest[device][model::Category::Activations]);
  }
}

// Of every case, which prints itself and of which `plan` makes a run.
template <class Case>
void expect_all_predicted(run::Run (*plan)(const Case&), std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    std::ostringstream what;
    what << c;
    SCOPED_TRACE(what.str());
    expect_predicted(plan(c));
  }
}

}  // namespace penstock::testing
