// SPDX-License-Identifier: Apache-2.0
// The section [memory] of a run file: policies, their ranges, the limit, and what is chosen for "auto".
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/option_text.h"
#include "failure.h"
#include "run/memory.h"
#include "run/resolve/choose.h"
#include "run/resolve/resolve.h"

namespace penstock::run {
namespace {

using Change = std::function<void(MemoryOptions&)>;
using model::Policy;
using model::SavedTensor;

Options options_with(const Change& change, std::int64_t slices = 8) {
  Options options;
  options.data.text = "corpus.txt";
  options.data.seq_len = 4096;
  options.parallel.pp = 2;
  options.schedule.slices = slices;
  options.train.batch = 4;
  change(options.memory);
  return options;
}

std::vector<model::KeepSet> kept(const Change& change, std::int64_t slices = 1) {
  return resolve(options_with(change, slices)).keep;
}

std::string refusal(const Change& change) {
  return failure<InputError>([&] { resolve(options_with(change)); });
}

Bytes most(const run::Run& run) {
  Bytes greatest = 0;
  for (const model::MemoryPeaks& memory : run.predicted) {
    greatest = std::max(greatest, memory.total());
  }
  return greatest;
}

Bytes most_of(const char* policy) {
  return most(resolve(options_with([&](auto& m) { m.policy = policy; })));
}

TEST(MemoryPolicy, HoldsForEveryLayerUnlessARangeSaysOtherwise) {
  const auto full = keep_of(Policy::Full), balanced = keep_of(Policy::Balanced);
  EXPECT_EQ(kept([](auto& m) { m.policy = "full"; }), std::vector(8, full));
  const auto mixed = kept([](auto& m) {
    m.policy = "full";
    m.stages = {"1: balanced"};
    m.layers = {"0-1: balanced", "5: layer_input+q+kv"};
  });
  const auto own = full.with(SavedTensor::Query).with(SavedTensor::KeyValue);
  EXPECT_EQ(mixed, (std::vector{balanced, balanced, full, full, balanced, own, balanced, balanced}));
}

TEST(MemoryPolicy, KeepsTheCacheWhereThereAreSlices) {
  const auto cached = keep_of(Policy::Full).with(SavedTensor::KeyValue);
  EXPECT_EQ(kept([](auto& m) { m.policy = "full"; }, 4), std::vector(8, cached));
  EXPECT_EQ(kept([](auto& m) { m.keep = {"layer_input"}; }, 4), std::vector(8, cached));
}

TEST(MemoryPolicy, RefusalsNameTheKeyAndWhatWouldBeRight) {
  const std::pair<const char*, Change> cases[] = {
      {"memory.keep lacks \"layer_input\"",
       [](auto& m) {
         m.keep = {"q", "kv"};
       }},
      {"did you mean \"kv\"",
       [](auto& m) {
         m.keep = {"layer_input", "k"};
       }},
      {"memory.keep names \"q\" twice",
       [](auto& m) {
         m.keep = {"layer_input", "q", "q"};
       }},
      {"both given", [](auto& m) { m.policy = "full", m.keep = {"layer_input"}; }},
      {"both given", [](auto& m) { m.policy = "auto", m.keep = {"layer_input"}; }},
      {"memory.policy \"ful\" is unknown", [](auto& m) { m.policy = "ful"; }},
      {"memory.layers entry \"full\" has no colon", [](auto& m) { m.layers = {"full"}; }},
      {"goes beyond the last, number 7", [](auto& m) { m.layers = {"6-8: full"}; }},
      {"goes beyond the last, number 1", [](auto& m) { m.stages = {"2: full"}; }},
      {"runs backwards", [](auto& m) { m.layers = {"3-1: full"}; }},
      {"is not a range", [](auto& m) { m.layers = {"-1: full"}; }},
      {"is not a range", [](auto& m) { m.layers = {"1-2-3: full"}; }},
      {"is not a policy", [](auto& m) { m.layers = {"0: auto"}; }},
      {"lacks \"layer_input\"", [](auto& m) { m.stages = {"0: q+kv"}; }},
      {"memory.limit", [](auto& m) { m.limit = "a lot"; }},
  };
  for (const auto& [text, change] : cases) {
    const std::string message = refusal(change);
    EXPECT_NE(message.find(text), std::string::npos) << text << "\n" << message;
  }
}

TEST(MemoryPolicy, EachPresetNeedsLessThanTheOneBefore) {
  EXPECT_LT(most_of("balanced"), most_of("none"));
  EXPECT_LT(most_of("balanced+fc1"), most_of("balanced"));
  EXPECT_LT(most_of("full"), most_of("balanced+fc1"));
}

TEST(MemoryPolicy, AutoIsTheCheapestThatFitsAndResolvesToItself) {
  for (const char* policy : {"none", "balanced", "balanced+fc1", "full"}) {
    const Options options = options_with([&](auto& m) {
      m.policy = "auto";
      m.limit = std::to_string(most_of(policy)) + " B";
    });
    const run::Run run = resolve(options);
    EXPECT_EQ(run.options.memory.policy, policy);
    EXPECT_NE(run.note(Topic::Memory).find(std::string("policy ") + policy + ": the cheapest that fits"),
              std::string::npos);
    EXPECT_EQ(resolve(run.options).keep, run.keep);
  }
  EXPECT_EQ(resolve(options_with([](auto& m) { m.policy = "auto"; })).options.memory.policy, "none");
}

std::string answer(const run::Run& run) {
  return failure<NoAnswer>([&] { require_fit(run); });
}

TEST(MemoryLimit, RefusesByTheLargestCategoryAndNamesWhatFits) {
  const run::Run run =
      resolve(options_with([](auto& m) { m.limit = std::to_string(most_of("balanced")) + " B"; }));
  const std::string text = answer(run);
  EXPECT_NE(text.find("device 0 would need"), std::string::npos) << text;
  EXPECT_NE(text.find("of which the largest part is activations"), std::string::npos) << text;
  EXPECT_NE(text.find("memory.policy = \"balanced\" would fit"), std::string::npos) << text;
}

TEST(MemoryLimit, SaysSoWhenNothingFits) {
  const run::Run run = resolve(options_with([](auto& m) { m.limit = "1 MiB"; }));
  EXPECT_NE(answer(run).find("no policy fits: the least is"), std::string::npos) << answer(run);
  const std::string automatic =
      failure<NoAnswer>([] { resolve(options_with([](auto& m) { m.policy = "auto", m.limit = "1 MiB"; })); });
  EXPECT_NE(automatic.find("no policy fits"), std::string::npos) << automatic;
}

// Rounded down, the advice would be refused.
TEST(MemoryLimit, NamesALeastThatIsEnough) {
  const std::string text = answer(resolve(options_with([](auto& m) { m.limit = "1 MiB"; })));
  const std::string before = "the least is ",
                    after = ", with memory.policy = \"full\" with schedule.slices = ";
  const std::size_t begin = text.find(before) + before.size(), end = text.find(after);
  ASSERT_NE(end, std::string::npos) << text;
  Options advised = options_with([&](auto& m) {
    m.policy = "full";
    m.limit = text.substr(begin, end - begin);
  });
  advised.schedule.slices = std::stoi(text.substr(end + after.size()));
  EXPECT_EQ(answer(resolve(advised)), "") << text;
}

TEST(MemoryLimit, NamesTheSettingsOfTheLeastWhereNothingFits) {
  const std::string text = answer(resolve(options_with([](auto& m) { m.limit = "1 MiB"; })));
  EXPECT_NE(text.find(", with memory.policy = \"full\""), std::string::npos) << text;
  EXPECT_EQ(text.find("with these settings"), std::string::npos) << text;
}

TEST(MemoryLimit, IsSilentWhereTheRunFits) {
  const run::Run run =
      resolve(options_with([](auto& m) { m.limit = std::to_string(most_of("none")) + " B"; }));
  EXPECT_NO_THROW(require_fit(run));
}

}  // namespace
}  // namespace penstock::run
