// SPDX-License-Identifier: Apache-2.0
// The predicted total of a device beside the measured one where something other than records weighs most:
// what waits between stages, on one device or between two, and what an evaluation takes.
#include <gtest/gtest.h>

#include "backend/ledger.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

// With so little kept of a layer, hidden states that wait are a large part of all.
run::Options total_options(const std::string& schedule, int devices, int slices) {
  run::Options options = small_options(schedule, devices, slices, "bf16");
  options.model.shape = {.layers = 8, .hidden = 128, .ffn = 128, .heads = 4, .kv_heads = 1};
  options.data.seq_len = 512;
  options.train.batch = 16;
  options.memory.policy = "full";
  return options;
}

using Look = std::function<void(train::Trainer&, const model::MemoryPeaks& predicted, int device)>;

void after_a_step(const run::Run& run, const Look& look) {
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    trainer.step(1, tokens_of(drawn_batches(run, 1)));
    look(trainer, run.predicted[world.rank()], world.rank());
  });
}

double over(Bytes part, Bytes whole) { return static_cast<double>(part) / static_cast<double>(whole); }

TEST(PredictedTotal, CountsWhatAStageHandsToAnotherOfItsDevice) {
  for (const char* schedule : {"breadth-first", "interleaved", "slimpipe"}) {
    for (const double share : {0.0, 1.0}) {
      SCOPED_TRACE(std::string(schedule) + ", offload " + std::to_string(share));
      run::Options options = total_options(schedule, 1, std::string(schedule) == "slimpipe" ? 8 : 1);
      options.schedule.chunks = 4;
      options.memory.offload.number = share;
      after_a_step(planned(options), [&](train::Trainer& trainer, const auto& predicted, int) {
        EXPECT_NEAR(over(predicted.total(), trainer.ledger().peak_total()), 1, 0.02);
      });
    }
  }
}

// The first device is through with all its forwards long before the second takes their outputs.
TEST(PredictedTotal, CountsMessagesWhoseReceiverIsNotReady) {
  for (const int first : {1, 2}) {
    run::Options options = total_options("gpipe", 2, 1);
    options.parallel.layers.list = {first, 8 - first};
    const run::Run run = planned(options);
    const Bytes message = 512 * 128 * 2;
    EXPECT_GT(run.predicted[0].transfers, 8 * message);
    after_a_step(run, [&](train::Trainer& trainer, const auto& predicted, int device) {
      // How many of the sixteen wait at once is up to the machine.
      const Bytes measured = trainer.ledger().peak_total(), apart = predicted.total() - predicted.transfers;
      EXPECT_LT(over(measured, apart + std::max(predicted.transfers, 16 * message)), 1.02) << device;
      EXPECT_GT(over(measured, apart), 0.98) << device;
    });
  }
}

// An evaluation has no backward that would hold a fast device back.
TEST(PredictedTotal, IsNotExceededByAnEvaluationOnUnequalStages) {
  for (const int slices : {4, 16}) {
    run::Options options = total_options("slimpipe", 2, slices);
    options.parallel.layers.list = {1, 7};
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      const auto tokens = tokens_of(drawn_batches(run, 1));
      trainer.evaluate(tokens);
      const Bytes message = 512 / slices * 128 * 2;
      // Those of two groups of a slice for each device, and what is about to be received.
      EXPECT_LE(trainer.ledger().peak(model::Category::Transfers), (2 * 2 + 2) * message) << slices;
      trainer.step(1, tokens);
      trainer.evaluate(tokens);
      const model::MemoryPeaks& predicted = run.predicted[world.rank()];
      // In the step, too, the machine decides how many of those that are under way wait.
      const Bytes under_way = (slices + 2) * message;
      EXPECT_LT(over(trainer.ledger().peak_total(), predicted.total() + under_way), 1.02) << slices;
    });
  }
}

}  // namespace
}  // namespace penstock::testing
