// SPDX-License-Identifier: Apache-2.0
// Memory of runs whose vocabulary is sharded: what was predicted, and never the logits of a whole slice. Of
// logits, to the byte with and without shards.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "train/small_run.h"

namespace penstock::testing {
namespace {

using model::Category;

struct VocabularyCase {
  int devices, slices, chunks;
  const char* precision;
  const char* policy = "none";
  bool tied = false;
  double offload = 0;
  std::int64_t tile = 64;
};

std::ostream& operator<<(std::ostream& out, const VocabularyCase& c) {
  return out << c.devices << " devices, " << c.slices << " slices, " << c.chunks << " chunks, " << c.precision
             << ", " << c.policy << ", tied " << c.tied << ", offload " << c.offload << ", tile " << c.tile;
}

// Large enough that a scratch buffer of a library is a small share.
run::Run vocabulary_plan(const VocabularyCase& c) {
  run::Options options = small_options("slimpipe", c.devices, c.slices, c.precision);
  options.model.shape = {.layers = 8, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = 2, .vocab = 2001};
  options.model.shape.tied_embeddings = c.tied;
  options.data.seq_len = 1024;
  options.schedule.chunks = c.chunks;
  options.schedule.vocabulary_parallel = true;
  options.memory.policy = c.policy;
  options.memory.offload.number = c.offload;
  options.train.batch = 3;
  options.train.loss_tile_tokens = c.tile;
  return planned(options);
}

// Tiles of the device's columns, two where a slice has more than one; on the last device also what is kept of
// its slices' hidden states, 2h bytes a token in bf16.
Bytes most_logits(const run::Run& run, int rank) {
  const auto devices = run.program.device_count();
  const Bytes element = model::element_size(run.precision);
  const Bytes tile = run.options.train.loss_tile_tokens;
  const Bytes rows = (run.shape().vocab + devices - 1) / devices;
  const bool last = rank + 1 == devices;
  const Bytes kept = last ? run.options.data.seq_len * run.shape().hidden * element : 0;
  return 2 * tile * rows * 4 + kept;
}

void expect_predicted(const run::Run& run) {
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    trainer.step(1, tokens_of(drawn_batches(run, 1)));
    const backend::Ledger& ledger = trainer.ledger();
    const auto& predicted = run.predicted[world.rank()];
    SCOPED_TRACE("device " + std::to_string(world.rank()));
    EXPECT_EQ(predicted.weights, ledger.peak(Category::Weights));
    EXPECT_EQ(predicted.gradients, ledger.peak(Category::Gradients));
    EXPECT_EQ(predicted.optimizer, ledger.peak(Category::Optimizer));
    EXPECT_EQ(predicted.activations, ledger.peak(Category::Activations));
    EXPECT_EQ(predicted.kv_gradients, ledger.peak(Category::KvGradients));
    EXPECT_EQ(predicted.logits, ledger.peak(Category::Logits));
    EXPECT_LE(ledger.peak(Category::Logits), most_logits(run, world.rank()));
    EXPECT_EQ(ledger.live(Category::Logits), 0);
    EXPECT_NEAR(static_cast<double>(predicted.total()) / static_cast<double>(ledger.peak_total()), 1.0, 0.02);
  });
}

TEST(VocabularyMemory, IsAsPredictedAndHoldsTwoTilesOfLogitsAtMost) {
  for (const VocabularyCase& c : {VocabularyCase{1, 4, 1, "f32"},
                                  {2, 2, 1, "f32"},
                                  {2, 8, 1, "f32", "none", true},
                                  {2, 8, 1, "bf16"},
                                  {2, 4, 2, "bf16", "balanced"},
                                  {2, 8, 1, "f32", "full"},
                                  {2, 8, 1, "bf16", "full", true, 0.5},
                                  {3, 7, 1, "f32", "balanced+fc1"},
                                  {4, 8, 1, "f32", "none", false, 1.0},
                                  {4, 4, 2, "bf16", "full", true},
                                  {4, 4, 1, "f32", "none", false, 0, 512},
                                  {2, 4, 1, "f32", "none", false, 0, 100}}) {
    std::ostringstream what;
    what << c;
    SCOPED_TRACE(what.str());
    expect_predicted(vocabulary_plan(c));
  }
}

// The vocabulary's matrices are not gathered anew for each use, so in f32 they are their own masters.
TEST(VocabularyMemory, OfStatesOverReplicasIsAsPredictedToTheByte) {
  for (const char* precision : {"f32", "f64", "bf16"}) {
    for (const char* shard : {"optimizer", "weights"}) {
      for (const bool sharded : {false, true}) {
        SCOPED_TRACE(std::string(precision) + " " + shard + (sharded ? ", sharded" : ""));
        run::Options options = small_options("slimpipe", 2, 4, precision);
        options.model.shape.vocab = 301;
        options.schedule.vocabulary_parallel = sharded;
        options.parallel.dp = options.train.batch = 2;
        options.parallel.shard = shard;
        const run::Run run = planned(options);
        std::vector<Bytes> held(4);
        on_ranks(run, [&](comm::Communicator& world) {
          const train::Trainer trainer(run, world);
          held[world.rank()] = trainer.ledger().live(Category::Optimizer);
        });
        std::vector<Bytes> most(2);
        for (int rank = 0; rank < 4; ++rank) {
          Bytes& of_device = most[run.mesh.coordinates_of(rank).pipeline];
          of_device = std::max(of_device, held[rank]);
        }
        for (int device = 0; device < 2; ++device) EXPECT_EQ(run.predicted[device].optimizer, most[device]);
      }
    }
  }
}

struct LogitsCase {
  std::int64_t vocabulary;
  int slices;
  const char* precision;
  bool sharded;
  std::int64_t tile;
};

std::ostream& operator<<(std::ostream& out, const LogitsCase& c) {
  return out << "vocabulary " << c.vocabulary << ", " << c.slices << " slices, " << c.precision
             << (c.sharded ? ", sharded" : "") << ", tile " << c.tile;
}

run::Run vocabulary_plan(const LogitsCase& c) {
  run::Options options = small_options("slimpipe", 2, c.slices, c.precision);
  options.model.shape.vocab = c.vocabulary;
  options.data.seq_len = 96;
  options.schedule.vocabulary_parallel = c.sharded;
  options.train.batch = 3;
  options.train.loss_tile_tokens = c.tile;
  return planned(options);
}

// Returns the peak on the last device, which has the whole output layer unless it is sharded.
Bytes expect_predicted_logits(const run::Run& run) {
  Bytes of_last = 0;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    trainer.step(1, tokens_of(drawn_batches(run, 1)));
    const Bytes measured = trainer.ledger().peak(Category::Logits);
    EXPECT_EQ(measured, run.predicted[world.rank()].logits) << "device " << world.rank();
    if (world.rank() + 1 == world.size()) of_last = measured;
  });
  return of_last;
}

TEST(LogitsMemory, IsAsPredictedToTheByteForEveryVocabularySliceCountPrecisionAndTile) {
  std::set<Bytes> peaks;
  for (const std::int64_t vocabulary : {259, 517, 2000, 5003}) {
    for (const int slices : {1, 3, 8}) {
      for (const char* precision : {"f64", "f32", "bf16"}) {
        for (const bool sharded : {false, true}) {
          for (const std::int64_t tile : {7, 32, 512}) {
            const LogitsCase c{vocabulary, slices, precision, sharded, tile};
            std::ostringstream what;
            what << c;
            SCOPED_TRACE(what.str());
            peaks.insert(expect_predicted_logits(vocabulary_plan(c)));
          }
        }
      }
    }
  }
  EXPECT_GT(peaks.size(), 100u);  // the cases are not one case
}

}  // namespace
}  // namespace penstock::testing
