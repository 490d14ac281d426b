// SPDX-License-Identifier: Apache-2.0
// Logical shards of tensor parallelism: what is refused, and what each rank has of the model and its memory.
#include "run/tensor.h"

#include <gtest/gtest.h>

#include <bit>

#include "changed.h"
#include "model/parameters.h"
#include "run/held_parameters.h"

namespace penstock::run {
namespace {

// Ranks and shards (0: as many) of a model of eight heads.
std::function<void(Options&)> sharded(std::int64_t ranks, std::int64_t shards, std::int64_t kv_heads = 8) {
  return [=](Options& o) {
    o.parallel.tp = ranks;
    o.numerics.tensor = shards;
    o.model.shape.kv_heads = kv_heads;
  };
}

Run tensor_resolved(std::int64_t ranks, std::int64_t shards, std::int64_t kv_heads = 8) {
  return resolve(changed(sharded(ranks, shards, kv_heads)));
}

TEST(TensorShards, AreAsManyAsTheRanksUnlessGiven) {
  EXPECT_EQ(tensor_resolved(1, 0).tensor_shards(), 1);
  const run::Run run = tensor_resolved(4, 0), finer = tensor_resolved(2, 8);
  EXPECT_EQ(run.tensor_shards(), 4);
  EXPECT_EQ(run.shards_of_rank(), 1);
  EXPECT_EQ(run.logical_mesh(), run.mesh);
  EXPECT_EQ(finer.shards_of_rank(), 4);
  EXPECT_EQ(finer.mesh.tensor, 2);
  EXPECT_EQ(finer.logical_mesh().tensor, 8);
  EXPECT_EQ(finer.logical_mesh().pipeline, finer.mesh.pipeline);
  EXPECT_EQ(finer.sharding().mesh, finer.logical_mesh());
  EXPECT_TRUE(finer.options.parallel.tp_overlap);
}

TEST(TensorShards, RefuseNumbersThatMakeNoTreeAndNameTheNearest) {
  EXPECT_EQ(refusal(sharded(4, 2)),
            "numerics.tensor = 2 is not a multiple of parallel.tp = 4; use numerics.tensor = 4, or "
            "parallel.tp = 2");
  EXPECT_EQ(refusal(sharded(8, 4)),
            "numerics.tensor = 4 is not a multiple of parallel.tp = 8; use numerics.tensor = 8, or "
            "parallel.tp = 4");
  const auto twelve = [](std::int64_t ranks, std::int64_t shards) {
    return refusal([=](Options& o) {
      o.model.shape.hidden = 384;
      o.model.shape.heads = o.model.shape.kv_heads = 12;
      o.parallel.tp = ranks;
      o.numerics.tensor = shards;
    });
  };
  EXPECT_EQ(
      twelve(2, 6),
      "numerics.tensor = 6 is 3 times parallel.tp = 2; parts of a product are added in a binary tree, so "
      "that must be a power of two; use numerics.tensor = 4, or parallel.tp = 1 or 3");
  EXPECT_EQ(twelve(2, 3),
            "numerics.tensor = 3 is not a multiple of parallel.tp = 2; use numerics.tensor = 2 or 4, or "
            "parallel.tp = 1 or 3");
  EXPECT_EQ(twelve(1, 3), "") << "one rank has the whole tree";
  EXPECT_EQ(twelve(3, 12), "");
}

TEST(TensorShards, RefuseNumbersThatTheModelDoesNotFitAndNameTheNearest) {
  EXPECT_EQ(refusal(sharded(3, 0)), "parallel.tp = 3 does not divide model.heads = 8; use 2 or 4");
  EXPECT_EQ(refusal(sharded(1, 3)), "numerics.tensor = 3 does not divide model.heads = 8; use 2 or 4");
  EXPECT_EQ(refusal(sharded(2, 16)), "numerics.tensor = 16 does not divide model.heads = 8; use 8");
  EXPECT_EQ(refusal(sharded(3, 6)), "numerics.tensor = 6 does not divide model.heads = 8; use 4 or 8");
  const auto six_key_heads = [](Options& o) {
    o.model.shape.hidden = 384;
    o.model.shape.heads = 12;
    o.model.shape.kv_heads = 6;
    o.parallel.tp = 2;
    o.numerics.tensor = 4;
  };
  EXPECT_EQ(refusal(six_key_heads),
            "numerics.tensor = 4 neither divides model.kv_heads = 6 nor is a multiple of it; use 2");
  const auto three_key_heads = [](Options& o) {
    o.model.shape.hidden = 384;
    o.model.shape.heads = 12;
    o.model.shape.kv_heads = 3;
    o.parallel.tp = 5;
  };
  EXPECT_EQ(refusal(three_key_heads), "parallel.tp = 5 does not divide model.heads = 12; use 3 or 6");
  const auto narrow = [](Options& o) {
    o.model.shape.ffn = 3;
    o.numerics.tensor = 8;
  };
  EXPECT_EQ(refusal(narrow),
            "numerics.tensor = 8 is above model.ffn = 3, so that a part would have no column; use 2");
}

// What is refused is what fits no tree or no head.
TEST(TensorShards, TakeEveryNumberThatFits) {
  for (std::int64_t ranks = 1; ranks <= 8; ++ranks) {
    for (std::int64_t shards = 1; shards <= 16; ++shards) {
      for (const std::int64_t kv_heads : {1, 2, 8}) {
        const bool tree = ranks == 1 || (shards % ranks == 0 &&
                                         std::has_single_bit(static_cast<std::uint64_t>(shards / ranks)));
        const bool fits = 8 % shards == 0 && (kv_heads % shards == 0 || shards % kv_heads == 0);
        EXPECT_EQ(refusal(sharded(ranks, shards, kv_heads)).empty(), tree && fits)
            << shards << " on " << ranks << " with " << kv_heads << " key heads";
      }
    }
  }
}

TEST(TensorShards, OfAVocabularyOverThePipelineAreCountedWithItsDevices) {
  const auto small = [](std::int64_t ranks, std::int64_t shards) {
    return refusal([=](Options& o) {
      o.data.text.clear();
      o.data.megatron = {"corpus"};
      o.model.shape.vocab = 15;
      o.schedule.vocabulary_parallel = true;
      o.parallel.tp = ranks;
      o.numerics.tensor = shards;
    });
  };
  const std::string what =
      "schedule.vocabulary_parallel = true needs as many tokens as devices; model.vocab = 15 is less than ";
  EXPECT_EQ(small(8, 0), what + "parallel.tp · pp = 16: use pp = 1 or less");
  EXPECT_EQ(small(2, 8), what + "numerics.tensor · parallel.pp = 16: use pp = 1 or less");
  EXPECT_EQ(small(1, 4), "");
}

TEST(TensorShards, HaveTheHeadsAndColumnsOfTheirParameters) {
  const run::Run run = tensor_resolved(2, 4, 2);
  std::int64_t columns = 0;
  for (int shard = 0; shard < 4; ++shard) {
    const model::Shape shape = model::shape_of_shard(run.shape(), run.tensor_shards(), shard);
    for (const auto& [name, sizes] : model::layer_parameter_shapes(run.shape(), 0)) {
      const auto held = mesh::shard_of(name, sizes, run.sharding(), {.tensor = shard}).count;
      const mesh::Cut cut = mesh::cut_of(name);
      if (cut == mesh::Cut::Heads || cut == mesh::Cut::HeadColumns) {
        EXPECT_EQ(held, shape.query_width());
      }
      if (cut == mesh::Cut::KeyHeads) {
        EXPECT_EQ(held, shape.kv_width());
      }
      if (cut == mesh::Cut::Rows || cut == mesh::Cut::Columns) {
        EXPECT_EQ(held, shape.ffn);
      }
    }
    columns += shape.ffn;
  }
  EXPECT_EQ(columns, run.shape().ffn);
}

std::int64_t whole_stage(const Run& run, int stage) {
  std::int64_t sum = run.layers[stage].count * model::layer_parameters(run.shape());
  if (stage == 0) sum += run.shape().vocab * run.shape().hidden;
  if (stage + 1 == run.stages()) sum += model::output_parameters(run.shape());
  return sum;
}

std::int64_t norms(const Run& run, int stage) {
  return run.shape().hidden * (2 * run.layers[stage].count + (stage + 1 == run.stages() ? 1 : 0));
}

// One rank with all shards has the model once, and of norms a copy for each shard.
TEST(TensorShards, OfARankHoldItsPartsAndACopyOfEachNorm) {
  const auto with_vocabulary = [](std::int64_t ranks, std::int64_t shards) {
    return resolve(changed([&](Options& o) {
      sharded(ranks, shards)(o);
      o.model.shape.vocab = 264;  // no padding
    }));
  };
  const run::Run one = with_vocabulary(1, 8);
  for (int stage = 0; stage < one.stages(); ++stage) {
    const HeldParameters all = held_by_stage(one, stage);
    EXPECT_EQ(all.weights, whole_stage(one, stage) + 7 * norms(one, stage));
    for (const std::int64_t ranks : {2, 4, 8}) {
      const HeldParameters part = held_by_stage(with_vocabulary(ranks, 8), stage);
      EXPECT_EQ(ranks * part.weights, all.weights) << ranks;
      EXPECT_EQ(ranks * part.gradients, all.gradients) << ranks;
      EXPECT_EQ(ranks * part.states, all.states) << ranks;
    }
  }
  const run::Run keys = tensor_resolved(8, 8, 2);  // four shards to a key head
  EXPECT_EQ(held_by_stage(keys, 1).weights - held_by_stage(tensor_resolved(8, 8), 1).weights, 0)
      << "a key head each in both";
}

// Shares of the states are cut from each shard's tensors.
TEST(TensorShards, ShareTheirStatesWithReplicas) {
  const auto replicated = [](std::int64_t ranks) {
    return resolve(changed([&](Options& o) {
      sharded(ranks, 4)(o);
      o.parallel.dp = 2;
    }));
  };
  const HeldParameters one = held_by_stage(replicated(1), 0), four = held_by_stage(replicated(4), 0);
  EXPECT_EQ(one.states, 4 * four.states);
  EXPECT_EQ(one.longest, four.longest);
  EXPECT_EQ(2 * four.states, four.weights);
}

// The same shards over other ranks: what one keeps of them is the same sum.
TEST(TensorShards, KeepTheSameSumOfBytesOnAnyNumberOfRanks) {
  for (const std::int64_t kv_heads : {8, 2}) {
    const auto predicted = [&](std::int64_t ranks) {
      return resolve(changed([&](Options& o) {
               sharded(ranks, 8, kv_heads)(o);
               o.schedule.name = "zb-h1";
             }))
          .predicted;
    };
    const model::MemoryTable one = predicted(1);
    for (const std::int64_t ranks : {2, 4, 8}) {
      const model::MemoryTable part = predicted(ranks);
      for (std::size_t device = 0; device < one.size(); ++device) {
        EXPECT_EQ(ranks * part[device].activations, one[device].activations);
        EXPECT_EQ(ranks * part[device].weight_records, one[device].weight_records);
        EXPECT_EQ(ranks * part[device].optimizer, one[device].optimizer);
        EXPECT_EQ(ranks * part[device].gradients, one[device].gradients);
        EXPECT_LT(part[device].transient, one[device].transient);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::run
