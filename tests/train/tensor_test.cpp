// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism: the bits of one rank with the same logical shards for every number of ranks, on every
// mesh, in checkpoints too; and context exchange between ranks that have part of the heads.
#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/equal_runs.h"
#include "train/near_runs.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

constexpr std::int64_t kTensorSteps = 5;

struct Shape {
  const char* schedule;
  int slices;
  int chunks;
};
constexpr Shape kShapes[] = {
    {"slimpipe", 4, 1}, {"slimpipe", 4, 2}, {"1f1b", 1, 1}, {"breadth-first", 1, 2}, {"zb-v", 1, 2}};

// One rank with so many logical shards. Slices of 4, 3, 3 and 3 tokens leave the last of four shards without
// rows.
run::Options tensor_options(const Shape& shape, int shards, const std::string& precision) {
  run::Options options = small_options(shape.schedule, 1, shape.slices, precision);
  options.model.shape.layers = 4;
  options.schedule.chunks = shape.chunks;
  options.data.seq_len = 13;
  options.train.batch = 4;
  options.numerics.tensor = shards;
  return options;
}

run::Options on_mesh(run::Options options, int ranks, int devices, int replicas = 1) {
  options.parallel.tp = ranks;
  options.parallel.pp = devices;
  options.parallel.dp = replicas;
  return options;
}

const Trained& tensor_plain_run(const Shape& shape, int shards, const std::string& precision) {
  static std::map<std::string, Trained> runs;
  const bool sliced = shape.slices > 1;
  const std::string key = precision + std::to_string(shards) + (sliced ? " sliced" : "");
  if (!runs.contains(key)) {
    const Shape plain = sliced ? Shape{"slimpipe", shape.slices, 1} : Shape{"1f1b", 1, 1};
    runs[key] = train_steps(planned(tensor_options(plain, shards, precision)), kTensorSteps);
  }
  return runs.at(key);
}

class Tensor : public ::testing::TestWithParam<Shape> {};

INSTANTIATE_TEST_SUITE_P(EqualBits, Tensor, ::testing::ValuesIn(kShapes), [](const auto& shape) {
  std::string name = std::string(shape.param.schedule) + (shape.param.chunks > 1 ? "_chunks" : "");
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(Tensor, RanksTrainToTheBitsOfOne) {
  for (const char* precision : {"f32", "bf16"}) {
    for (const int shards : {2, 4}) {
      const Trained& wanted = tensor_plain_run(GetParam(), shards, precision);
      for (int ranks = 1; ranks <= shards; ranks *= 2) {
        for (const int devices : {1, 2}) {
          SCOPED_TRACE(std::string(precision) + ", " + std::to_string(shards) + " shards on " +
                       std::to_string(ranks) + " ranks, " + std::to_string(devices) + " devices");
          const run::Options options = tensor_options(GetParam(), shards, precision);
          expect_equal_runs(train_steps(planned(on_mesh(options, ranks, devices)), kTensorSteps), wanted);
        }
      }
    }
  }
}

// Shards are numerics: other numbers of them are another order of sums.
TEST(Tensor, ShardsDifferByRoundingAlone) {
  const Trained one = train_steps(planned(tensor_options({"slimpipe", 4, 1}, 1, "f32")), kTensorSteps);
  for (const int shards : {2, 4}) {
    const Trained& several = tensor_plain_run({"slimpipe", 4, 1}, shards, "f32");
    EXPECT_NE(several.norms, one.norms);
    for (std::size_t step = 0; step < one.losses.size(); ++step)
      EXPECT_NEAR(several.losses[step], one.losses[step], 1e-5 * one.losses[step]);
  }
}

using Change = std::function<void(run::Options&)>;

struct TensorMesh {
  int ranks, devices;
};

// Three steps of the changed options, on one rank of so many devices and on these meshes.
void expect_bits_of_one(const std::string& what, int shards, const Change& change,
                        const std::vector<TensorMesh>& meshes, int devices = 1) {
  SCOPED_TRACE(what);
  run::Options options = tensor_options({"slimpipe", 4, 1}, shards, "bf16");
  change(options);
  const Trained wanted = train_steps(planned(on_mesh(options, 1, devices)), 3);
  for (const TensorMesh& mesh : meshes) {
    SCOPED_TRACE(std::to_string(mesh.ranks) + " ranks, " + std::to_string(mesh.devices) + " devices");
    expect_equal_runs(train_steps(planned(on_mesh(options, mesh.ranks, mesh.devices)), 3), wanted);
  }
}

void expect_bits_of_one(const std::string& what, int shards, const Change& change) {
  switch (shards) {
    case 2:
      return expect_bits_of_one(what, shards, change, {{1, 2}, {2, 1}, {2, 2}});
    case 4:
      return expect_bits_of_one(what, shards, change, {{2, 2}, {4, 1}});
    case 6:
      return expect_bits_of_one(what, shards, change, {{3, 2}, {6, 1}});
    default:
      return expect_bits_of_one(what, shards, change, {{shards, 1}, {shards, 2}});
  }
}

TEST(Tensor, RanksKeepTheirBitsUnderEveryPolicy) {
  for (const char* policy : {"balanced", "balanced+fc1", "full"})
    expect_bits_of_one(policy, 4, [&](run::Options& options) { options.memory.policy = policy; });
  expect_bits_of_one("norms alone", 4, [](run::Options& options) {
    options.memory.keep = {"layer_input", "norm1_output", "norm2_output"};
  });
  expect_bits_of_one("all but what is gathered", 2, [](run::Options& options) {
    options.memory.keep = {"layer_input", "attention_output", "fc1", "product"};
  });
}

TEST(Tensor, RanksKeepTheirBitsForEveryModel) {
  expect_bits_of_one("tied", 4, [](run::Options& o) { o.model.shape.tied_embeddings = true; });
  expect_bits_of_one("one key head", 4, [](run::Options& o) { o.model.shape.kv_heads = 1; });
  expect_bits_of_one("key heads for all", 4, [](run::Options& o) { o.model.shape.kv_heads = 4; });
  expect_bits_of_one("ffn that does not divide", 4, [](run::Options& o) { o.model.shape.ffn = 23; });
  expect_bits_of_one("wide heads", 2, [](run::Options& o) { o.model.shape.head_size = 6; });
  for (const auto& [heads, kv_heads] : {std::pair{6, 3}, {12, 3}, {6, 1}}) {
    expect_bits_of_one("three", 3, [&](run::Options& o) {
      o.model.shape = {.layers = 4, .hidden = 24, .ffn = 25, .heads = heads, .kv_heads = kv_heads};
    });
  }
  for (const auto& [heads, kv_heads] : {std::pair{6, 3}, {12, 2}, {6, 1}}) {
    expect_bits_of_one("six", 6, [&](run::Options& o) {
      o.model.shape = {.layers = 4, .hidden = 24, .ffn = 25, .heads = heads, .kv_heads = kv_heads};
    });
  }
}

TEST(Tensor, RanksKeepTheirBitsWithOtherSlicesAndWaits) {
  expect_bits_of_one("no overlap", 4, [](run::Options& o) { o.parallel.tp_overlap = false; });
  expect_bits_of_one("several sequences", 4, [](run::Options& o) { o.train.micro_batch = 2; });
  expect_bits_of_one("tiles of the loss", 4, [](run::Options& o) {
    o.train.micro_batch = 2;
    o.train.loss_tile_tokens = 3;
  });
  expect_bits_of_one("single tokens", 4, [](run::Options& o) {
    o.schedule.slices = 8;
    o.data.seq_len = 9;
  });
}

TEST(Tensor, RanksKeepTheirBitsWithReplicas) {
  for (const char* shard : {"off", "optimizer", "weights"}) {
    SCOPED_TRACE(shard);
    run::Options options = tensor_options({"slimpipe", 4, 1}, 4, "bf16");
    options.numerics.replicas = 2;
    options.model.shape.tied_embeddings = true;
    static const Trained wanted = train_steps(planned(options), 3);
    options.parallel.shard = shard;
    for (const auto& [ranks, devices] : {std::pair{4, 1}, {2, 2}, {1, 2}})
      expect_equal_runs(train_steps(planned(on_mesh(options, ranks, devices, 2)), 3), wanted);
  }
}

// Shared by two replicas, with two copies of the share.
TEST(Tensor, RanksKeepTheirBitsWithGroupsOfReplicas) {
  run::Options options = tensor_options({"slimpipe", 4, 1}, 2, "f32");
  options.numerics.replicas = 4;
  const Trained wanted = train_steps(planned(options), 3);
  options.parallel.shard = "weights";
  options.parallel.shard_group = 2;
  expect_equal_runs(train_steps(planned(on_mesh(options, 2, 1, 4)), 3), wanted);
}

// What a sharded vocabulary computes depends on the devices too.
TEST(Tensor, RanksKeepTheirBitsWithAShardedVocabulary) {
  for (const int devices : {1, 2}) {
    for (const bool tied : {false, true}) {
      const auto change = [&](run::Options& o) {
        o.schedule.vocabulary_parallel = true;
        o.model.shape.tied_embeddings = tied;
        o.train.loss_tile_tokens = 2;
      };
      expect_bits_of_one(tied ? "tied" : "untied", 4, change, {{2, devices}, {4, devices}}, devices);
    }
  }
}

TEST(Tensor, RanksKeepTheirBitsWhereRecordsAreOffloaded) {
  expect_bits_of_one("offloaded", 4, [](run::Options& o) {
    o.memory.offload.number = 0.5;
    o.memory.policy = "balanced";
  });
}

TEST(Tensor, RanksEvaluateToTheBitsOfOne) {
  const run::Options options = tensor_options({"slimpipe", 4, 1}, 4, "bf16");
  std::map<std::pair<int, int>, double> losses;
  for (const auto& [ranks, devices] : {std::pair{1, 1}, {2, 2}, {4, 1}}) {
    const run::Run run = planned(on_mesh(options, ranks, devices));
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      const double loss = trainer.evaluate(tokens_of(run, world.rank(), drawn_batches(run, 5)));
      if (world.rank() == 0) losses[{ranks, devices}] = loss;
    });
  }
  EXPECT_EQ(losses.at({2, 2}), losses.at({1, 1}));
  EXPECT_EQ(losses.at({4, 1}), losses.at({1, 1}));
}

// Every step on another mesh, each from the checkpoint of the one before.
TEST(Tensor, RanksWriteTheCheckpointOfOneAndGoOnWithOthers) {
  const Scratch one, several;
  run::Options options = tensor_options({"slimpipe", 4, 1}, 4, "bf16");
  options.model.shape.tied_embeddings = true;
  options.numerics.replicas = 2;
  const auto wanted = run_steps(planned(options), one.path(), 1, 5);
  std::int64_t step = 0;
  std::map<std::string, at::Tensor> state;
  for (const auto& [ranks, devices, replicas, shard] : {std::tuple{2, 2, 1, "off"},
                                                        {4, 1, 2, "optimizer"},
                                                        {1, 2, 2, "weights"},
                                                        {2, 1, 2, "weights"},
                                                        {4, 2, 1, "off"}}) {
    options.parallel.shard = shard;
    ++step;
    state = run_steps(planned(on_mesh(options, ranks, devices, replicas)), several.path(), step, step);
    verify(several.path(), step);
  }
  for (const auto& [name, tensor] : wanted) expect_same_bits(state.at(name), tensor, name);
  for (const auto& entry : std::filesystem::directory_iterator(one / "step-000005")) {
    const std::string file = entry.path().filename().string();
    EXPECT_TRUE(one.read("step-000005/" + file) == several.read("step-000005/" + file)) << file;
  }
}

// docs/mesh.md: passes of a layer, each of all rows to all other ranks, then what embedding, output layer and
// norms take; all of one step, of all ranks, in f64.
double bytes_of_passes(const run::Run& run, int passes_of_layer) {
  const double others = run.mesh.tensor - 1, hidden = static_cast<double>(run.shape().hidden);
  const auto layers = static_cast<double>(run.shape().layers);
  const auto tokens = static_cast<double>(run.options.train.batch * run.options.data.seq_len);
  const double rows = tokens * hidden * (passes_of_layer * layers + 4);
  const double statistics = 3 * tokens * run.mesh.tensor;
  const double norms = 2 * (2 * layers + 1) * hidden;
  return 8 * others * (rows + statistics + norms);
}

TEST(Tensor, RanksSendTheBytesOfTheirFormula) {
  struct Case {
    const char* schedule;
    const char* policy;
    int devices, passes;  // F, then B or I and W
  };
  for (const Case& c : {Case{"slimpipe", "none", 1, 4 + 6},
                        {"slimpipe", "full", 1, 4 + 7},
                        {"zb-h1", "none", 2, 4 + 4 + 4}}) {
    for (const int ranks : {2, 4}) {
      for (const bool overlap : {true, false}) {
        const int slices = c.devices == 1 ? 4 : 1;
        run::Options options = tensor_options({c.schedule, slices, 1}, ranks, "f64");
        options.model.shape.kv_heads = 4;  // none is shared
        options.memory.policy = c.policy;
        options.parallel.tp_overlap = overlap;
        const run::Run run = planned(on_mesh(options, ranks, c.devices));
        SCOPED_TRACE(std::string(c.schedule) + ", " + c.policy + ", " + std::to_string(ranks));
        on_ranks(run, [&](comm::Communicator& world) {
          train::Trainer trainer(run, world);
          const auto report = trainer.step(1, tokens_of(run, world.rank(), drawn_batches(run, 1)));
          EXPECT_EQ(static_cast<double>(report.traffic.at(mesh::Group::Tensor).sent),
                    bytes_of_passes(run, c.passes));
        });
      }
    }
  }
}

run::Options exchanging(int shards, int devices, const std::string& precision) {
  run::Options options = tensor_options({"slimpipe", 8, 1}, shards, precision);
  options.data.seq_len = 35;
  options.train.batch = 2;
  tell_gradients(options.train);
  return on_mesh(options, shards, devices);
}

void expect_exchange_to_change_nothing(run::Options options, double tolerance) {
  SCOPED_TRACE(std::to_string(options.parallel.tp) + " ranks, " + std::to_string(options.parallel.pp) +
               " devices, " + options.train.precision);
  const run::Run without = planned(options);
  const Trained wanted = train_steps(without, 2), initial = train_steps(without, 0);
  for (const char* exchange : {"paired", "levelled"}) {
    options.schedule.exchange = exchange;
    const run::Run run = planned(options);
    EXPECT_FALSE(run.program.exchanges.empty());
    expect_near_run(train_steps(run, 2), wanted, initial, tolerance);
  }
}

TEST(Tensor, RanksExchangeContextWithThoseOfTheSameHeads) {
  for (const int devices : {2, 4}) {
    expect_exchange_to_change_nothing(exchanging(2, devices, "f64"), 1e-10);
    expect_exchange_to_change_nothing(exchanging(2, devices, "f32"), 2e-5);
  }
  expect_exchange_to_change_nothing(exchanging(4, 2, "f64"), 1e-10);
  run::Options options = exchanging(2, 4, "f64");
  options.schedule.vocabulary_parallel = true;
  options.memory.policy = "full";
  expect_exchange_to_change_nothing(options, 1e-10);
}

TEST(Tensor, RanksThatExchangeContextRepeatTheirBits) {
  run::Options options = exchanging(2, 4, "bf16");
  options.schedule.exchange = "levelled";
  expect_equal_runs(train_steps(planned(options), 2), train_steps(planned(options), 2));
}

}  // namespace
}  // namespace penstock::testing
