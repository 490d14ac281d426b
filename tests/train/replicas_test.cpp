// SPDX-License-Identifier: Apache-2.0
// Data parallelism: the bits of one replica for every number of replicas, every mesh and every sharding of
// the states; and the memory that was predicted.
#include <gtest/gtest.h>

#include "backend/memory.h"
#include "nn/tensor_checks.h"
#include "run/held_parameters.h"
#include "run/replicas.h"
#include "scratch.h"
#include "train/equal_runs.h"
#include "train/mesh_memory.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

constexpr std::int64_t kReplicaSteps = 10;
constexpr int kGroups = 4;
constexpr const char* kShards[] = {"off", "optimizer", "weights"};

struct ReplicaShape {
  const char* schedule;
  int slices;
  int chunks;
};
constexpr ReplicaShape kReplicaShapes[] = {{"slimpipe", 4, 1},      {"slimpipe", 4, 2}, {"1f1b", 1, 1},
                                           {"breadth-first", 1, 2}, {"zb-v", 1, 2},     {"gpipe", 1, 1}};

run::Options replicas_options(const ReplicaShape& shape, int devices, int replicas,
                              const std::string& precision) {
  run::Options options = small_options(shape.schedule, devices, shape.slices, precision);
  options.schedule.chunks = shape.chunks;
  options.parallel.dp = replicas;
  options.numerics.replicas = kGroups;
  return options;
}

// One device, one replica.
const Trained& replicas_plain_run(const ReplicaShape& shape, const std::string& precision) {
  static std::map<std::string, Trained> runs;
  const std::string key = precision + (shape.slices > 1 ? " sliced" : "");
  if (!runs.contains(key)) {
    const ReplicaShape plain =
        shape.slices > 1 ? ReplicaShape{"slimpipe", shape.slices, 1} : ReplicaShape{"1f1b", 1, 1};
    runs[key] = train_steps(planned(replicas_options(plain, 1, 1, precision)), kReplicaSteps);
  }
  return runs.at(key);
}

class Replicas : public ::testing::TestWithParam<ReplicaShape> {};

INSTANTIATE_TEST_SUITE_P(EqualBits, Replicas, ::testing::ValuesIn(kReplicaShapes), [](const auto& shape) {
  std::string name = std::string(shape.param.schedule) + (shape.param.chunks > 1 ? "_chunks" : "");
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(Replicas, TrainToTheBitsOfOne) {
  for (const char* precision : {"f32", "bf16"}) {
    for (const int replicas : {1, 2, 4}) {
      for (const int devices : {1, 2, 3}) {
        for (const char* shard : kShards) {
          const bool lone = replicas == 1 && shard != kShards[0];
          if (lone) continue;
          SCOPED_TRACE(std::string(precision) + ", " + std::to_string(replicas) + " replicas, " +
                       std::to_string(devices) + " devices, shard " + shard);
          run::Options options = replicas_options(GetParam(), devices, replicas, precision);
          options.parallel.shard = shard;
          expect_equal_runs(train_steps(planned(options), kReplicaSteps),
                            replicas_plain_run(GetParam(), precision));
        }
      }
    }
  }
}

// One group for each replica, an odd number of replicas, shares of a part of them, tied embeddings.
TEST(ReplicaGroups, OfAnyLegalSizesHaveTheBitsOfTheirTree) {
  struct Case {
    int replicas, groups, shard_group;
  };
  for (const Case& c : {Case{4, 4, 2}, {4, 8, 1}, {2, 8, 2}, {3, 3, 3}, {3, 6, 3}, {8, 8, 4}}) {
    for (const char* shard : {"optimizer", "weights"}) {
      SCOPED_TRACE(std::to_string(c.replicas) + " of " + std::to_string(c.groups) + ", groups of " +
                   std::to_string(c.shard_group) + ", " + shard);
      run::Options options = replicas_options({"slimpipe", 4, 1}, 1, 1, "bf16");
      options.model.shape.tied_embeddings = true;
      options.train.batch = c.groups % 3 == 0 ? 12 : 8;
      options.numerics.replicas = c.groups;
      const Trained wanted = train_steps(planned(options), 3);
      options.parallel.dp = c.replicas;
      options.parallel.pp = 2;
      options.parallel.shard = shard;
      options.parallel.shard_group = c.shard_group;
      expect_equal_runs(train_steps(planned(options), 3), wanted);
    }
  }
}

// Everything together: the bits of one replica on the same devices.
TEST(Replicas, KeepTheirBitsUnderPoliciesOffloadingAndTheShardedVocabulary) {
  for (const char* shard : kShards) {
    SCOPED_TRACE(shard);
    run::Options options = replicas_options({"slimpipe", 4, 2}, 2, 1, "bf16");
    options.memory.policy = "balanced";
    options.memory.offload.number = 0.5;
    options.schedule.vocabulary_parallel = true;
    options.model.shape.tied_embeddings = true;
    const Trained wanted = train_steps(planned(options), 3);
    options.parallel.dp = 2;
    options.parallel.shard = shard;
    expect_equal_runs(train_steps(planned(options), 3), wanted);
  }
}

TEST(Replicas, ExchangeContextWithinTheirPipelines) {
  run::Options options = replicas_options({"slimpipe", 8, 1}, 4, 2, "f32");
  options.data.seq_len = 64;
  options.schedule.exchange = "paired";
  const Trained whole = train_steps(planned(options), 3);
  for (const char* shard : {"off", "weights"}) {
    options.parallel.shard = shard;
    expect_equal_runs(train_steps(planned(options), 3), whole);
  }
}

TEST(Replicas, AgreeInF64WithOneDevice) {
  const Trained wanted = train_steps(planned(replicas_options({"1f1b", 1, 1}, 1, 1, "f64")), 3);
  run::Options options = replicas_options({"breadth-first", 1, 2}, 2, 2, "f64");
  options.numerics.replicas = 2;  // other groups, another order of the sums
  const Trained got = train_steps(planned(options), 3);
  for (std::size_t i = 0; i < wanted.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], wanted.losses[i], 1e-10 * wanted.losses[i]);
  for (const auto& [name, weight] : wanted.weights) {
    const double scale = weight.abs().max().item<double>();
    EXPECT_LE((got.weights.at(name) - weight).abs().max().item<double>(), 1e-10 * scale) << name;
  }
}

TEST(Replicas, WriteTheCheckpointOfOneAndGoOnWithOthers) {
  const Scratch one, several;
  const run::Options plain = replicas_options({"slimpipe", 4, 1}, 1, 1, "bf16");
  const auto wanted = run_steps(planned(plain), one.path(), 1, 4);
  std::int64_t done = 0;
  for (const auto& [devices, replicas, shard] :
       {std::tuple(2, 2, "optimizer"), {1, 4, "weights"}, {2, 2, "off"}}) {
    run::Options options = replicas_options({"slimpipe", 4, 1}, devices, replicas, "bf16");
    options.parallel.shard = shard;
    const std::int64_t last = done == 2 ? 4 : done + 1;
    const auto state = run_steps(planned(options), several.path(), done + 1, last);
    done = last;
    if (done < 4) continue;
    for (const auto& [name, tensor] : wanted) expect_same_bits(state.at(name), tensor, name);
  }
  for (const auto& entry : std::filesystem::directory_iterator(one / "step-000004")) {
    const std::string file = entry.path().filename().string();
    EXPECT_TRUE(one.read("step-000004/" + file) == several.read("step-000004/" + file)) << file;
  }
}

// A rank copies and writes its part alone, also where all replicas have all states.
TEST(Replicas, WriteTheirPartsOfACheckpoint) {
  for (const char* shard : kShards) {
    const Scratch scratch;
    run::Options options = replicas_options({"1f1b", 1, 1}, 2, 4, "bf16");
    options.parallel.shard = shard;
    const run::Run run = planned(options);
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      auto saver = saver_of(run, scratch.path(), trainer, world);
      saver.begin(facts_of(run, 0, trainer));
      saver.settle();
      Bytes all = 0, slack = 0;
      for (const train::Optimizer::Entry& entry : trainer.optimizer().entries()) {
        all += 12 * entry.parameter->elements();
        slack += 12 * mesh::kShareUnit;
      }
      EXPECT_LE(saver.copy_bytes(), all / 4 + slack) << shard;
    });
  }
}

// 12 bytes of masters and moments a parameter, over the replicas, and at most 64 elements a tensor more.
TEST(ReplicaMemory, OfStatesIsAShareOfThem) {
  for (const int replicas : {2, 4}) {
    for (const char* shard : {"optimizer", "weights"}) {
      run::Options options = replicas_options({"1f1b", 1, 1}, 2, replicas, "bf16");
      options.parallel.shard = shard;
      const run::Run run = planned(options);
      on_ranks(run, [&](comm::Communicator& world) {
        train::Trainer trainer(run, world);
        Bytes all = 0, tensors = 0;
        for (const train::Optimizer::Entry& entry : trainer.optimizer().entries()) {
          all += 12 * entry.parameter->elements();
          ++tensors;
        }
        const Bytes held = trainer.ledger().live(model::Category::Optimizer);
        EXPECT_LE(held, all / replicas + tensors * 12 * mesh::kShareUnit);
      });
    }
  }
}

// Weights and gradients of two of a device's v stages, and the shares of all: held to the byte.
TEST(ReplicaMemory, OfPassingWeightsUnderBreadthFirstIsThatOfTwoStages) {
  run::Options options = replicas_options({"breadth-first", 1, 4}, 2, 2, "bf16");
  options.numerics.replicas = 2;
  options.parallel.shard = "weights";
  const run::Run run = planned(options);
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    for (std::int64_t step = 1; step <= 2; ++step) step_on_drawn_tokens(run, trainer, world.rank(), step);
    const int device = trainer.pipeline()->rank();
    std::vector<Bytes> weights, gradients;
    const Bytes tables = 2 * 4 * run.options.data.seq_len * (run.shape().head_dim() / 2);  // of all stages
    Bytes shares = 0;
    for (auto& [number, stage] : trainer.stages()) {
      Bytes elements = 0;
      for (const nn::Parameter& parameter : stage.parameters()) {
        elements += parameter.elements();
        shares += 4 * parameter.share().count;
      }
      weights.push_back(2 * elements);
      gradients.push_back(4 * elements);
    }
    // The stages run one after the other, there and back: neighbours are there together.
    const auto neighbours = [](const std::vector<Bytes>& bytes) {
      Bytes most = 0;
      for (std::size_t i = 0; i + 1 < bytes.size(); ++i) most = std::max(most, bytes[i] + bytes[i + 1]);
      return most;
    };
    ASSERT_EQ(weights.size(), 4u);
    const backend::Ledger& ledger = trainer.ledger();
    EXPECT_EQ(ledger.peak(model::Category::Weights), neighbours(weights) + tables);
    EXPECT_EQ(ledger.peak(model::Category::Gradients), neighbours(gradients) + shares);
    EXPECT_EQ(ledger.peak(model::Category::Weights), run.predicted[device].weights);
    EXPECT_LE(ledger.peak(model::Category::Gradients), run.predicted[device].gradients);
  });
  const MeasuredMemory memory = memory_of_steps(run);  // one replica's shares are longer
  for (std::size_t device = 0; device < memory.greatest.size(); ++device)
    EXPECT_EQ(memory.greatest[device][model::Category::Gradients], run.predicted[device].gradients);
}

// What makes no whole unit of a share is the last rank's, of small tensors all there is.
TEST(ReplicaMemory, IsAsPredictedOfTensorsThatAreNoWholeUnits) {
  for (const int replicas : {2, 4}) {
    for (const char* shard : {"optimizer", "weights"}) {
      for (const std::int64_t experts : {1, 3}) {
        SCOPED_TRACE(std::to_string(replicas) + " " + shard + " " + std::to_string(experts));
        run::Options options = replicas_options({"1f1b", 1, 1}, 1, replicas, "f32");
        options.model.shape.hidden = 20;
        options.model.shape.ffn = 33;
        options.model.shape.heads = options.model.shape.kv_heads = 2;
        options.model.shape.experts = experts;
        options.parallel.shard = shard;
        expect_predicted(planned(options));
      }
    }
  }
}

TEST(ReplicaMemory, IsPredictedByCategoryAndInTotal) {
  for (const ReplicaShape& shape : kReplicaShapes) {
    for (const char* precision : {"f32", "bf16"}) {
      for (const char* shard : kShards) {
        SCOPED_TRACE(std::string(shape.schedule) + ", " + precision + ", " + shard);
        run::Options options = replicas_options(shape, 2, 2, precision);
        options.parallel.shard = shard;
        const run::Run run = planned(options);
        const MeasuredMemory memory = memory_of_steps(run);
        for (std::size_t device = 0; device < memory.greatest.size(); ++device)
          expect_predicted(run.predicted[device], memory.greatest[device], /*transient=*/0.1);  // 900 bytes
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
