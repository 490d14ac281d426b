// SPDX-License-Identifier: Apache-2.0
// What a rank holds between steps and at its peak, for every schedule: nothing of a step outlives it, and the
// records peak where the plan says, to the byte.
#include <gtest/gtest.h>

#include <set>

#include "backend/memory.h"
#include "schedule/generators/generator.h"
#include "train/mesh_memory.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

using model::Category;

constexpr Category kOfAStep[] = {Category::Activations, Category::WeightRecords, Category::KvGradients,
                                 Category::Logits, Category::Transfers};

void expect_nothing_kept(train::Trainer& trainer) {
  for (const Category category : kOfAStep) {
    EXPECT_EQ(trainer.ledger().live(category), 0) << model::name_of(category);
  }
  for (auto& [number, stage] : trainer.stages()) {
    const auto saved = stage.saved_bytes();
    EXPECT_EQ(saved.activations + saved.weight_records + saved.kv_gradients + saved.logits, 0) << number;
  }
}

void expect_predicted_peaks(train::Trainer& trainer, const run::Run& run, int device) {
  const backend::Ledger& ledger = trainer.ledger();
  const model::MemoryPeaks& predicted = run.predicted[device];
  EXPECT_EQ(ledger.peak(Category::Activations), predicted.activations);
  EXPECT_EQ(ledger.peak(Category::Logits), predicted.logits);
  EXPECT_EQ(ledger.peak(Category::WeightRecords), predicted.weight_records);
  EXPECT_EQ(ledger.peak(Category::KvGradients), predicted.kv_gradients);
}

// Calls `look` on every rank after each of two steps and an evaluation.
void watch(const run::Options& options,
           const std::function<void(train::Trainer&, const run::Run&, int device)>& look) {
  const run::Run run = planned(options);
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    for (std::int64_t step = 1; step <= 2; ++step) {
      const auto tokens = tokens_of(drawn_batches(run, static_cast<std::uint64_t>(step)));
      trainer.step(step, tokens);
      look(trainer, run, world.rank());
      if (step < 2) continue;
      trainer.evaluate(tokens);
      look(trainer, run, world.rank());
    }
  });
}

void for_every_schedule(const std::function<void(const run::Options&)>& body) {
  for (const schedule::Generator& generator : schedule::generators()) {
    if (generator.replicates_parameters) continue;
    for (const int devices : {1, 2, 4}) {
      SCOPED_TRACE(std::string(generator.name) + ", " + std::to_string(devices) + " devices");
      body(small_options(std::string(generator.name), devices, generator.sliced_sibling.empty() ? 4 : 1,
                         "bf16"));
    }
  }
}

TEST(MemoryOfASchedule, IsGivenBackAtTheEndOfEveryStepAndPeaksAsPredicted) {
  for_every_schedule([](const run::Options& options) {
    watch(options, [](train::Trainer& trainer, const run::Run& run, int device) {
      expect_nothing_kept(trainer);
      expect_predicted_peaks(trainer, run, device);
    });
  });
}

TEST(MemoryOfASchedule, DoesNotGrowFromStepToStep) {
  for (const char* schedule : {"slimpipe", "seq1f1b-interleaved"}) {
    std::mutex mutex;
    std::map<const train::Trainer*, std::set<Bytes>> totals;
    watch(small_options(schedule, 2, 4, "bf16"), [&](train::Trainer& trainer, const run::Run&, int) {
      const std::lock_guard lock(mutex);
      totals[&trainer].insert(trainer.ledger().live_total());
    });
    for (const auto& [trainer, seen] : totals) EXPECT_EQ(seen.size(), 1u);
  }
}

// Records and temporaries of this run are large enough to be cached.
TEST(MemoryOfASchedule, IsReusedFromStepToStep) {
  for (const char* precision : {"f32", "bf16"}) {
    run::Options options = small_options("slimpipe", 1, 4, precision);
    options.model.shape = {.layers = 2, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 2};
    options.data.seq_len = 2048;
    options.train.batch = 2;
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      const auto tokens = tokens_of(drawn_batches(run, 1));
      for (std::int64_t step = 1; step <= 2; ++step) trainer.step(step, tokens);
      const std::int64_t before = backend::mapped_blocks();
      EXPECT_GT(before, 0);
      for (std::int64_t step = 3; step <= 5; ++step) trainer.step(step, tokens);
      EXPECT_EQ(backend::mapped_blocks(), before) << precision;
    });
  }
}

// The gathering of the next stage's weights, for which an op waits, comes after the sums of earlier
// gradients.
TEST(MemoryOfASchedule, OfShardedWeightsWhoseStagesAlternateIsAsPredicted) {
  const Scratch scratch;
  scratch.write("alternating.csv", "0F0,1F0,2F0,0F1,1F1,2F1,2B0,2B1,1B0,0B0,1B1,0B1\n");
  auto options = small_options("", 1, 0, "f32");
  options.model.shape = {.layers = 3, .hidden = 64, .ffn = 64, .heads = 2, .kv_heads = 2};
  options.schedule.file = scratch / "alternating.csv";
  options.parallel.dp = 2;
  options.parallel.shard = "weights";
  options.train.micro_batch = 1;
  options.train.batch = 4;
  expect_predicted(planned(options));
}

TEST(MemoryOfASchedule, CountsMessagesOfADeviceThatHasNeighbours) {
  watch(small_options("slimpipe", 2, 4, "bf16"), [](train::Trainer& trainer, const run::Run&, int) {
    EXPECT_GT(trainer.ledger().peak(Category::Transfers), 0);
  });
}

}  // namespace
}  // namespace penstock::testing
