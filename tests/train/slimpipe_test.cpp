// SPDX-License-Identifier: Apache-2.0
// SlimPipe on the trainer at sizes that divide nothing: bits, and what is saved, against its formulas.
#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "run/costs.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"
#include "train/small_run.h"

namespace penstock::testing {
namespace {

using model::Category;

struct Size {
  int p, m, n, v = 1, group = 0;
  std::int64_t layers = 8;
  Tokens unit = 1;
};

std::ostream& operator<<(std::ostream& out, const Size& s) {
  return out << "p " << s.p << ", m " << s.m << ", n " << s.n << ", v " << s.v << ", group " << s.group
             << ", " << s.layers << " layers, unit " << s.unit;
}

run::Options slimpipe_options(const Size& size, Tokens tokens, const char* precision = "f32") {
  run::Options options = small_options("slimpipe", size.p, size.n, precision);
  options.model.shape.layers = size.layers;
  options.parallel.layers.word = "even";  // as the formulas have it
  options.data.seq_len = tokens;
  options.schedule.chunks = size.v;
  options.schedule.group = size.group;
  options.schedule.slice_unit = size.unit;
  options.train.batch = size.m;
  return options;
}

// From a file: no key of the run tells several numbers of slices.
Trained trained_unevenly(int devices, int chunks) {
  const Scratch scratch;
  const schedule::Request request{.devices = devices, .slices = {8, 2, 5}, .chunks = chunks};
  scratch.write("uneven.csv", schedule::to_csv(schedule::generate("slimpipe", request)));
  run::Options options = slimpipe_options({.p = devices, .m = 3, .n = 0}, 37);
  options.schedule = {.file = scratch / "uneven.csv"};
  return train_steps(planned(options), 2);
}

TEST(Slimpipe, HasTheBitsOfOneDeviceWithMicroBatchesOfDifferentNumbersOfSlices) {
  const Trained wanted = trained_unevenly(1, 1);
  for (const auto& [devices, chunks] : {std::pair{2, 1}, {4, 1}, {2, 2}}) {
    const Trained got = trained_unevenly(devices, chunks);
    EXPECT_EQ(got.losses, wanted.losses);
    EXPECT_EQ(got.norms, wanted.norms);
    for (const auto& [name, weight] : wanted.weights) expect_same_bits(got.weights.at(name), weight, name);
  }
}

TEST(Slimpipe, HasTheBitsOfOneDeviceWhereNothingDivides) {
  constexpr Tokens kTokens = 37;  // no number of slices below divides it
  for (const Size& size : {Size{2, 1, 2},
                           {2, 3, 5, 1, 0, 5},
                           {3, 1, 16, 1, 0, 4},
                           {4, 2, 3, 1, 0, 7},
                           {4, 1, 1, 1, 0, 5},
                           {2, 1, 6, 2, 3, 7},
                           {2, 2, 12, 3, 4, 11},
                           {3, 1, 9, 2, 9, 7},
                           {4, 2, 5, 2, 0, 9},
                           {2, 2, 4, 1, 0, 3, 8}}) {
    std::ostringstream what;
    what << size;
    SCOPED_TRACE(what.str());
    Size alone = size;
    alone.p = alone.v = 1;
    alone.group = 0;
    const Trained got = train_steps(planned(slimpipe_options(size, kTokens)), 2);
    const Trained wanted = train_steps(planned(slimpipe_options(alone, kTokens)), 2);
    EXPECT_EQ(got.losses, wanted.losses);
    EXPECT_EQ(got.norms, wanted.norms);
    ASSERT_EQ(got.weights.size(), wanted.weights.size());
    for (const auto& [name, weight] : wanted.weights) expect_same_bits(got.weights.at(name), weight, name);
  }
}

// In flight min(m·n·v, n·v + 2(p - r - 1)) slice-chunks of records; accumulators of keys and values of at
// most v(n - g) + g, the last slice of a micro-batch having none.
TEST(Slimpipe, SavesWhatItsFormulasSay) {
  for (const Size& size : {Size{2, 3, 8},
                           {4, 2, 4},
                           {4, 1, 8},
                           {2, 2, 4, 2},
                           {2, 2, 8, 2, 4},
                           {4, 2, 8, 2, 8},
                           {2, 2, 12, 4, 6}}) {
    std::ostringstream what;
    what << size;
    SCOPED_TRACE(what.str());
    const run::Run run = planned(slimpipe_options(size, 48));
    const sim::RecordBytes unit = sim::RunBytes(run::work_of(run)).record({0, 0, 0});
    const int group = size.v == 1 ? size.n : size.group == 0 ? size.p : size.group;
    on_ranks(run, [&](comm::Communicator& world) {
      train::Trainer trainer(run, world);
      trainer.step(1, tokens_of(drawn_batches(run, 1)));
      const int r = world.rank(), target = size.n * size.v + 2 * (size.p - r - 1);
      EXPECT_EQ(trainer.ledger().peak(Category::Activations),
                std::min(size.m * size.n * size.v, target) * unit.record);
      const Bytes accumulators = trainer.ledger().peak(Category::KvGradients);
      const int most = size.v * (size.n - group) + group;
      EXPECT_LE(accumulators, most * unit.kv_gradient);
      EXPECT_GE(accumulators, (most - size.v) * unit.kv_gradient);
      EXPECT_EQ(trainer.ledger().live(Category::KvGradients), 0);
    });
  }
}

}  // namespace
}  // namespace penstock::testing
