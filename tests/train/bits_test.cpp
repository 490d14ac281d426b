// SPDX-License-Identifier: Apache-2.0
// The promise of equal bits: the same slices and threads give the same losses and weights for every number of
// devices and every schedule.
#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "schedule/generators/generator.h"
#include "schedule/text.h"
#include "scratch.h"
#include "train/equal_runs.h"
#include "train/small_run.h"
#include "train/trainable_schedules.h"

namespace penstock::testing {
namespace {

constexpr const char* kNarrow[] = {"f32", "bf16"};
constexpr std::int64_t kSteps = 20;  // of the schedules that come first
constexpr std::int64_t kFewSteps = 4;
constexpr int kSlices = 4;

Trained trained(const run::Options& options, std::int64_t steps = kFewSteps) {
  return train_steps(planned(options), steps);
}

// The run to compare with: slimpipe in slices, 1f1b unsliced, on one device.
const Trained& plain_run(bool sliced, const std::string& precision, std::int64_t steps, bool tied) {
  static std::map<std::string, Trained> runs;
  const std::string key =
      precision + (sliced ? " sliced " : " ") + std::to_string(steps) + (tied ? " tied" : "");
  if (!runs.contains(key)) {
    auto options = small_options(sliced ? "slimpipe" : "1f1b", 1, sliced ? kSlices : 1, precision);
    options.model.shape.tied_embeddings = tied;
    runs[key] = trained(options, steps);
  }
  return runs.at(key);
}

bool is_sliced(const schedule::Generator& generator) { return generator.sliced_sibling.empty(); }

void expect_bits_of_plain_run(const std::string& schedule, int devices, const std::string& precision,
                              std::int64_t steps, bool tied) {
  SCOPED_TRACE(schedule + ", " + std::to_string(devices) + " devices, " + precision + (tied ? ", tied" : ""));
  const bool sliced = is_sliced(schedule::find_generator(schedule));
  auto options = small_options(schedule, devices, sliced ? kSlices : 1, precision);
  options.model.shape.tied_embeddings = tied;
  expect_equal_runs(trained(options, steps), plain_run(sliced, precision, steps, tied));
}

TEST(EqualBits, OfSlimpipeForEveryNumberOfDevices) {
  for (const char* precision : kNarrow) {
    for (const bool tied : {false, true}) {
      for (const int devices : {2, 4}) expect_bits_of_plain_run("slimpipe", devices, precision, kSteps, tied);
    }
  }
}

TEST(EqualBits, OfUnslicedSchedulesForEveryNumberOfDevices) {
  for (const char* precision : kNarrow) {
    for (const int devices : {1, 2, 4}) {
      expect_bits_of_plain_run("1f1b", devices, precision, kSteps, false);
      expect_bits_of_plain_run("gpipe", devices, precision, kSteps, false);
    }
  }
}

class EverySchedule : public ::testing::TestWithParam<schedule::Generator> {};

INSTANTIATE_TEST_SUITE_P(EqualBits, EverySchedule, ::testing::ValuesIn(trainable_schedules()), schedule_name);

TEST_P(EverySchedule, TrainsToTheBitsOfOneDevice) {
  for (const char* precision : kNarrow) {
    for (const int devices : {1, 2, 4}) {
      const bool tied = devices > 1;
      expect_bits_of_plain_run(std::string(GetParam().name), devices, precision, kFewSteps, tied);
    }
  }
}

TEST(EqualBits, OfInterleavedSlimpipe) {
  for (const char* precision : kNarrow) {
    for (const int devices : {1, 2, 4}) {
      auto options = small_options("slimpipe", devices, kSlices, precision);
      options.schedule.chunks = 2;
      expect_equal_runs(trained(options), plain_run(true, precision, kFewSteps, false));
    }
  }
}

TEST(EqualBits, OfLayersSpreadUnevenly) {
  auto options = small_options("slimpipe", 3, kSlices, "bf16");
  options.parallel.layers.list = {1, 5, 2};
  expect_equal_runs(trained(options), plain_run(true, "bf16", kFewSteps, false));
}

TEST(EqualBits, OfASingleSliceAndOneForwardOneBackward) {
  for (const char* precision : kNarrow) {
    for (const int devices : {1, 2, 4}) {
      expect_equal_runs(trained(small_options("slimpipe", devices, 1, precision)),
                        plain_run(false, precision, kFewSteps, false));
    }
  }
}

double farthest(const Trained& a, const Trained& b) {
  double distance = 0;
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    distance = std::max(distance, std::abs(a.losses[i] - b.losses[i]));
  }
  return distance;
}

// One of PyTorch's own schedules of eight micro-batches, from its file.
Trained trained_from_file(const std::string& name, int devices, const std::string& precision) {
  auto options = small_options("", devices, 0, precision);
  options.schedule.file = PENSTOCK_SOURCE_DIR "/tests/data/pytorch/" + name + ".csv";
  return trained(options);
}

// Rows in another order than ours, pairs that overlap, a split backward.
TEST(EqualBits, OfSchedulesFromFiles) {
  const std::map<std::string, int> files{{"gpipe_p4_m8", 4},
                                         {"dualpipev_p4_m8_v2", 4},
                                         {"interleaved1f1b_p3_m8_v2", 3},
                                         {"interleavedzerobubble_p3_m8_v2", 3}};
  for (const auto& [name, devices] : files) {
    SCOPED_TRACE(name);
    expect_equal_runs(trained_from_file(name, devices, "bf16"), plain_run(false, "bf16", kFewSteps, false));
  }
}

// PyTorch's looped breadth-first goes back through the micro-batches, so its sums of gradients round
// otherwise.
TEST(OtherOrders, OfMicroBatchesOnlyRoundOtherwise) {
  const Trained got = trained_from_file("loopedbfs_p3_m8_v2", 3, "f32");
  const Trained& plain = plain_run(false, "f32", kFewSteps, false);
  EXPECT_NE(got.norms, plain.norms);
  EXPECT_LT(farthest(got, plain), 1e-5);
}

TEST(EqualBits, OfASlicedScheduleFromAFile) {
  const Scratch scratch;
  scratch.write("my.csv", schedule::to_csv(schedule::generate("seq1f1b", schedule::request(2, 8, kSlices))));
  auto options = small_options("", 2, 0, "bf16");
  options.schedule.file = scratch / "my.csv";
  expect_equal_runs(trained(options), plain_run(true, "bf16", kFewSteps, false));
}

TEST(Slices, ChangeLossesInBf16ByLittle) {
  auto sliced = small_options("slimpipe", 1, kSlices, "bf16"), whole = small_options("1f1b", 1, 1, "bf16");
  sliced.train.lr = whole.train.lr = 1e-3;
  const double distance = farthest(trained(sliced, kSteps), trained(whole, kSteps));
  EXPECT_LT(distance, 5e-3);
  RecordProperty("distance", std::to_string(distance));
}

TEST(Slices, ChangeNothingInF64) {
  auto sliced = small_options("slimpipe", 2, kSlices, "f64"), whole = small_options("1f1b", 2, 1, "f64");
  sliced.train.eps = whole.train.eps =
      1e-3;  // else the first updates divide rounding errors by almost nothing
  const Trained a = trained(sliced), b = trained(whole);
  EXPECT_LT(farthest(a, b), 1e-10);
  for (const auto& [name, weight] : b.weights) expect_near(a.weights.at(name), weight, 1e-10, name);
}

TEST(EqualBits, DoDependOnTheTokensAndTheSeed) {
  auto options = small_options("slimpipe", 2, kSlices, "f32");
  const Trained once = trained(options, 1);
  options.train.seed = 2;
  const Trained other = trained(options, 1);
  EXPECT_NE(once.losses, other.losses);
  EXPECT_NE(plain_run(true, "f32", kSteps, false).losses[0],
            plain_run(true, "f32", kSteps, false).losses[19]);
}

}  // namespace
}  // namespace penstock::testing
