// SPDX-License-Identifier: Apache-2.0
// Vocabulary parallelism against the same run without it: 259 tokens, which no number of devices here
// divides.
#include <gtest/gtest.h>

#include "files/safetensors.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/weights_file.h"
#include "train/near_runs.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

run::Options vocabulary_options(int devices, int slices, const std::string& precision, bool sharded) {
  run::Options options = small_options("slimpipe", devices, slices, precision);
  options.train.micro_batch = 2;
  options.train.batch = 6;
  options.train.loss_tile_tokens = 3;  // several tiles a slice
  options.schedule.vocabulary_parallel = sharded;
  tell_gradients(options.train);
  return options;
}

void expect_no_difference(run::Options options, double tolerance, std::int64_t steps = 2) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(::testing::Message() << options.parallel.pp << " devices, " << options.schedule.slices
                                      << " slices, " << options.schedule.chunks << " chunks, tied " << tied);
    options.model.shape.tied_embeddings = tied;
    options.schedule.vocabulary_parallel = true;
    const Trained sharded = train_steps(planned(options), steps);
    options.schedule.vocabulary_parallel = false;
    const run::Run whole = planned(options);
    expect_near_run(sharded, train_steps(whole, steps), train_steps(whole, 0), tolerance);
  }
}

TEST(VocabularyParallel, ChangesNothingInF64) {
  for (const int devices : {1, 2, 3, 4}) {
    for (const int slices : {1, 4, 6})
      expect_no_difference(vocabulary_options(devices, slices, "f64", true), 1e-10);
  }
}

TEST(VocabularyParallel, ChangesNothingInF64WithSeveralChunks) {
  for (const int devices : {2, 4}) {
    run::Options options = vocabulary_options(devices, 8, "f64", true);
    options.schedule.chunks = 2;
    expect_no_difference(options, 1e-10);
    options.schedule.group = 8;  // inputs of the second chunk wait
    expect_no_difference(options, 1e-10);
  }
}

// Stated tolerances: sums of logits' exponentials and of hidden gradients in another order.
TEST(VocabularyParallel, ChangesF32AndBf16ByRounding) {
  for (const int devices : {2, 3, 4}) {
    for (const int slices : {1, 4, 6}) {
      expect_no_difference(vocabulary_options(devices, slices, "f32", true), 2e-5);
      expect_no_difference(vocabulary_options(devices, slices, "bf16", true), 2e-2);
    }
  }
}

TEST(VocabularyParallel, OfOneTileASliceIsTheSame) {
  run::Options options = vocabulary_options(3, 4, "f64", true);
  options.train.loss_tile_tokens = 512;
  expect_no_difference(options, 1e-10);
}

// 9 tokens on four devices are 3, 3, 3 and none; 5 are 2, 2, 1 and none.
TEST(VocabularyParallel, ChangesNothingWhereADeviceHasNothingButPadding) {
  for (const std::int64_t vocab : {4, 5, 9}) {
    for (const char* precision : {"f64", "f32"}) {
      run::Options options = vocabulary_options(4, 4, precision, true);
      options.model.shape.vocab = vocab;
      options.data.text.clear();
      options.data.megatron = {"no file"};  // bytes would need more tokens
      expect_no_difference(options, precision == std::string("f64") ? 1e-10 : 2e-5);
    }
  }
}

TEST(VocabularyParallel, RepeatsItsBits) {
  const run::Run run = planned(vocabulary_options(4, 4, "f32", true));
  const Trained first = train_steps(run, 3), second = train_steps(run, 3);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
  for (const auto& [name, weight] : first.weights) expect_same_bits(second.weights.at(name), weight, name);
}

TEST(VocabularyParallel, BeginsWithTheSameWeights) {
  for (const int devices : {1, 2, 3, 4}) {
    const Trained sharded = train_steps(planned(vocabulary_options(devices, 4, "f32", true)), 0);
    const Trained whole = train_steps(planned(vocabulary_options(devices, 4, "f32", false)), 0);
    for (const auto& [name, weight] : whole.weights) expect_same_bits(sharded.weights.at(name), weight, name);
  }
}

TEST(VocabularyParallel, NeverTrainsPadding) {
  run::Options options = vocabulary_options(4, 4, "f32", true);
  options.train.weight_decay = 0.1;
  options.train.eps = 1e-8;  // the least gradient would become a whole step
  const run::Run run = planned(options);
  std::atomic<int> padded = 0;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    for (std::int64_t step = 1; step <= 3; ++step) trainer.step(step, tokens_of(drawn_batches(run, 1)));
    for (const nn::Parameter* parameter : trainer.parameters()) {
      const mesh::Shard& shard = parameter->shard;
      const std::int64_t padding = shard.held - shard.count;
      const at::Tensor rows = parameter->master.narrow(0, shard.count, padding);
      EXPECT_EQ(rows.count_nonzero().item<std::int64_t>(), 0);
      padded += static_cast<int>(padding);
    }
  });
  EXPECT_EQ(padded, 2);  // 260 rows for 259 tokens, in both matrices
}

TEST(VocabularyParallel, WritesWholeMatricesUnderTheSameNames) {
  const Scratch scratch;
  for (const bool tied : {false, true}) {
    for (const int devices : {1, 3, 4}) {
      std::map<bool, std::map<std::string, std::vector<std::int64_t>>> shapes;
      for (const bool sharded : {false, true}) {
        run::Options options = vocabulary_options(devices, 4, "bf16", sharded);
        options.model.shape.tied_embeddings = tied;
        const run::Run run = planned(options);
        const std::string path = scratch / (sharded ? "sharded" : "whole");
        on_ranks(run, [&](comm::Communicator& world) {
          train::Trainer trainer(run, world);
          train::write_weights(path, run.shape(), trainer.parameters(), world);
        });
        const files::Safetensors file(path);
        for (const files::StoredTensor& tensor : file.tensors()) shapes[sharded][tensor.name] = tensor.shape;
      }
      EXPECT_EQ(shapes[true], shapes[false]);
      EXPECT_EQ(files::read_text(scratch / "sharded", 1 << 24), files::read_text(scratch / "whole", 1 << 24));
    }
  }
}

// Five slices in groups of four leave a short group in the order of an ordinary evaluation.
void expect_same_evaluation(int devices, int slices, int chunks) {
  std::map<bool, double> losses;
  for (const bool sharded : {false, true}) {
    run::Options options = vocabulary_options(devices, slices, "f64", sharded);
    options.schedule.chunks = chunks;
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      const double loss = trainer.evaluate(tokens_of(drawn_batches(run, 5)));
      if (world.rank() == 0) losses[sharded] = loss;
      EXPECT_EQ(trainer.ledger().live(model::Category::Activations), 0);
      EXPECT_EQ(trainer.ledger().live(model::Category::Transfers), 0);
      EXPECT_EQ(trainer.ledger().live(model::Category::Logits), 0);
    });
  }
  EXPECT_NEAR(losses[true], losses[false], 1e-10 * losses[false]);
}

TEST(VocabularyParallel, EvaluatesToTheSameLossAndKeepsNothing) {
  expect_same_evaluation(3, 4, 1);
  expect_same_evaluation(4, 5, 2);
}

}  // namespace
}  // namespace penstock::testing
