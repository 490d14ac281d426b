// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "changed.h"
#include "run/costs.h"
#include "run/resolve/resolve.h"
#include "sim/simulate.h"

namespace penstock::run {
namespace {

Options options(std::int64_t vocab, std::int64_t devices) {
  Options options;
  options.model.shape = {.layers = 8, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 4, .vocab = vocab};
  options.data.text = "some.txt";
  options.data.seq_len = 256;
  options.parallel.pp = devices;
  options.train.batch = 8;
  options.schedule.name = "1f1b";
  options.output.dir = "out";
  return options;
}

std::vector<std::int64_t> layers_of(const run::Run& run) {
  std::vector<std::int64_t> counts;
  for (const model::LayerRange& range : run.layers) counts.push_back(range.count);
  return counts;
}

using Counts = std::vector<std::int64_t>;

TEST(LayerSplitOfARun, GivesTheOutputLayersStageFewerLayersAndSaysWhy) {
  const auto run = lay_out(options(8000, 4), {});
  EXPECT_LT(run.layers.back().count, run.layers.front().count);
  EXPECT_NE(run.note(Topic::Layers).find("the output layer takes as long as"), std::string::npos)
      << run.note(Topic::Layers);
}

TEST(LayerSplitOfARun, IsEvenWhenAskedAndWhereEndsWeighNothing) {
  Options asked = options(8000, 4);
  asked.parallel.layers.word = "even";
  EXPECT_EQ(layers_of(lay_out(asked, {})), (Counts{2, 2, 2, 2}));
  Options sharded = options(8000, 4);
  sharded.schedule.name = "slimpipe";
  sharded.schedule.vocabulary_parallel = true;
  EXPECT_EQ(layers_of(lay_out(sharded, {})), (Counts{2, 2, 2, 2}));
  sharded.schedule.vocabulary_parallel = false;
  sharded.schedule.exchange = "levelled";
  const auto exchanging = lay_out(sharded, {});
  EXPECT_EQ(layers_of(exchanging), (Counts{2, 2, 2, 2}));
  EXPECT_EQ(exchanging.note(Topic::Layers), "");
}

// Full recomputation makes a layer dearer and the output layer not.
TEST(LayerSplitOfARun, GoesByThePolicy) {
  Options none = options(4000, 2), full = none;
  none.model.shape.layers = full.model.shape.layers = 40;
  full.memory.policy = "full";
  EXPECT_LT(lay_out(none, {}).layers.back().count, lay_out(full, {}).layers.back().count);
}

TEST(LayerSplitOfARun, IsNoSlowerThanAnyOtherBySimulation) {
  for (const std::int64_t vocab : {512, 4000, 32000}) {
    const auto seconds = [&](const Integers& layers) {
      Options asked = options(vocab, 2);
      asked.train.batch = 64;
      asked.parallel.layers.list = layers;
      const auto run = resolve(asked);
      return sim::simulate(run.program, costs_of(run, sim::assumed_hardware())).timeline.makespan();
    };
    const double chosen = seconds({});
    for (std::int64_t first = 1; first < 8; ++first)
      EXPECT_LE(chosen, 1.001 * seconds({first, 8 - first})) << vocab << ", first stage " << first;
  }
}

}  // namespace
}  // namespace penstock::run
