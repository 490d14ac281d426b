// SPDX-License-Identifier: Apache-2.0
// Megatron's files as training data.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "failure.h"
#include "files/megatron_files.h"
#include "run/data_shares.h"
#include "scratch.h"
#include "train/data/data.h"
#include "train/drawn_rows.h"

namespace penstock::train {
namespace {

using penstock::testing::bin_of;
using penstock::testing::idx_of;
using penstock::testing::IdxFields;

constexpr std::int64_t kVocab = 60'000;

#define EXPECT_SAYS(text, words) EXPECT_NE(std::string(text).find(words), std::string::npos) << text

struct IndexSetting {
  Scratch scratch;
  run::DataOptions data;
  run::TrainOptions train;

  IndexSetting() {
    data.seq_len = 10;
    data.validation_fraction = 0;
    train.batch = 4;
    train.micro_batch = 2;
    train.shuffle = false;
  }
  // A pair whose tokens count up from `first`.
  void add(const std::string& name, const std::vector<std::int32_t>& documents, int first = 0) {
    std::vector<std::uint16_t> tokens;
    for (const std::int32_t length : documents)
      for (std::int32_t i = 0; i < length; ++i) tokens.push_back(static_cast<std::uint16_t>(first++));
    scratch.write(name + ".bin", bin_of(tokens));
    scratch.write(name + ".idx", idx_of(documents).bytes());
    data.megatron.push_back(scratch / name);
  }
  TokenData open(std::int64_t vocab = kVocab) const { return TokenData(data, train, vocab); }
  std::string refusal(std::int64_t vocab = kVocab) const {
    return failure<InputError>([&] { open(vocab); });
  }
};

// The first tokens of so many samples, from the first one drawn on.
std::vector<std::int64_t> drawn(const TokenData& data, std::int64_t samples) {
  std::vector<std::int64_t> firsts;
  for (std::int64_t first = 0; first < samples; first += 4)
    for (std::int64_t i = 0; i < 4; ++i) firsts.push_back(row(data.training_batch(first).tokens, i)[0]);
  firsts.resize(static_cast<std::size_t>(samples));
  return firsts;
}

// Tokens count up from 0, so the token is its place in the pair.
TEST(MegatronData, NamesTheDocumentOfEveryTokenAndTakesNoTargetFromTheNext) {
  const std::vector<std::int32_t> documents{3, 25, 0, 1, 32, 0, 0, 40};
  std::vector<std::int64_t> begin_of;  // each token's document
  for (const std::int32_t length : documents) begin_of.insert(begin_of.end(), length, std::ssize(begin_of));
  for (const char* targets : {"s", "s-1"}) {
    IndexSetting setting;
    setting.data.mask = "documents";
    setting.train.loss_targets = targets;
    setting.add("a", documents);
    const TokenData data = setting.open();
    for (std::int64_t first = 0; first < data.samples(); first += 4) {
      const StepTokens step = data.training_batch(first);
      std::int64_t counted = 0;
      for (std::int64_t i = 0; i < 4; ++i) {
        const auto tokens = row(step.tokens, i), wanted = row(step.targets, i),
                   starts = row(step.documents, i);
        for (std::size_t at = 0; at < tokens.size(); ++at) {
          const std::int64_t begin = begin_of[static_cast<std::size_t>(tokens[at])];
          EXPECT_EQ(starts[at], std::max<std::int64_t>(begin - tokens[0], 0));
          const auto next = static_cast<std::size_t>(tokens[at] + 1);
          const bool has_next = next < begin_of.size() && begin_of[next] == begin;
          const bool in_sample = at + 1 < tokens.size() || std::string(targets) == "s";
          EXPECT_EQ(wanted[at], has_next && in_sample ? tokens[at] + 1 : -1) << tokens[at];
          counted += wanted[at] >= 0 ? 1 : 0;
        }
      }
      EXPECT_EQ(step.target_count, counted);
    }
  }
}

TEST(MegatronData, TakesTargetsOnlyWhereTheMaskSays) {
  IndexSetting setting;
  setting.add("a", {50});
  std::string mask(50, 0);
  for (const int token : {3, 4, 20, 31}) mask[static_cast<std::size_t>(token)] = 1;
  setting.scratch.write("a.mask", mask);
  const StepTokens step = setting.open().training_batch(0);
  EXPECT_EQ(step.target_count, 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto tokens = row(step.tokens, i), targets = row(step.targets, i);
    for (std::size_t at = 0; at < tokens.size(); ++at)
      EXPECT_EQ(targets[at], mask[static_cast<std::size_t>(tokens[at] + 1)] ? tokens[at] + 1 : -1);
  }
  setting.data.loss = "all";
  EXPECT_EQ(setting.open().training_batch(0).target_count, 40);
  setting.data.loss = "assistant";
  setting.scratch.write("a.mask", mask + '\1');
  EXPECT_SAYS(setting.refusal(), "a.mask has 51 bytes for 50 tokens; expected one each");
  mask[7] = 2;
  setting.scratch.write("a.mask", mask);
  EXPECT_SAYS(setting.refusal(), "a.mask: byte 7 is 2; expected 0 or 1");
}

TEST(MegatronData, NeverOpensAMaskThatTheLossIgnores) {
  IndexSetting setting;
  setting.add("a", {50});
  setting.data.loss = "all";
  const Content content = setting.open().content();
  setting.scratch.write("a.mask", std::string(50, '\0'));
  EXPECT_EQ(setting.open().content(), content);
  setting.scratch.write("a.mask", "of another file");
  EXPECT_EQ(setting.refusal(), "");
}

TEST(MegatronData, RefusesAMaskThatIsADanglingLink) {
  IndexSetting setting;
  setting.add("a", {50});
  std::filesystem::create_symlink("none", setting.scratch / "a.mask");
  EXPECT_SAYS(setting.refusal(), "a.mask: cannot be opened: No such file");
}

TEST(MegatronData, CutsSamplesAcrossDocumentsThatOverlapByOne) {
  IndexSetting setting;
  setting.add("a", {3, 25, 1, 32, 40});
  const TokenData data = setting.open();
  EXPECT_EQ(data.samples(), 10);
  for (std::int64_t first = 0; first < 8; ++first) {
    const StepTokens step = data.training_batch(first);
    EXPECT_EQ(step.target_count, 40);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t k = 0; k < 10; ++k) {
        EXPECT_EQ(row(step.tokens, i)[k], (first + i) % 10 * 10 + k);
        EXPECT_EQ(row(step.targets, i)[k], (first + i) % 10 * 10 + k + 1);
      }
    }
  }
}

TEST(MegatronData, SplitsWholeDocumentsAsMegatronDoes) {
  IndexSetting setting;
  setting.add("a", std::vector<std::int32_t>(100, 20));
  setting.data.split = "80,15,5";
  const TokenData data = setting.open();
  EXPECT_EQ(data.samples(), (80 * 20 - 1) / 10);
  EXPECT_EQ(data.evaluation_batches(), 8);  // (15·20 − 1) / 10 = 29 samples, four a batch
  EXPECT_EQ(row(data.evaluation_batch(0).tokens, 0)[0], 1600);
  EXPECT_EQ(row(data.evaluation_batch(7).tokens, 0)[0], 1600 + 280);
  EXPECT_EQ(data.evaluation_batch(7).target_count, 10);
}

TEST(MegatronData, ReadsSplitsOfOneToThreeShares) {
  EXPECT_EQ(run::parse_split("969, 30, 1")[0], 0.969);
  EXPECT_EQ(run::parse_split("1"), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(run::parse_split("3,1"), (std::vector<double>{0.75, 0.25, 0}));
  for (const char* bad : {"", "a", "1,,1", "0,1,1", "-1,2", "1,2,3,4", "1;2", "nan"})
    EXPECT_SAYS(failure<InputError>([&] { run::parse_split(bad); }), "is not a split; give the shares")
        << bad;
}

TEST(MegatronData, HasEverySampleOfAllPrefixesOnceInAnEpoch) {
  IndexSetting setting;
  setting.add("a", {51, 60}, 0);
  setting.add("b", {71}, 1000);
  setting.add("c", {15}, 5000);
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  ASSERT_EQ(data.samples(), 11 + 7 + 1);
  const auto order = drawn(data, 38);
  const std::set<std::int64_t> first(order.begin(), order.begin() + 19),
      second(order.begin() + 19, order.end());
  EXPECT_EQ(first.size(), 19u);
  EXPECT_EQ(first, second);
  EXPECT_NE(std::vector(order.begin(), order.begin() + 19), std::vector(order.begin() + 19, order.end()));
}

TEST(MegatronData, MixesPrefixesByTheirWeights) {
  IndexSetting setting;
  setting.add("a", {501}, 0);
  setting.add("b", {301}, 1000);
  setting.data.megatron_weights = {0.75, 0.25};
  setting.train.shuffle = true;
  const auto order = drawn(setting.open(), 200);
  std::map<std::int64_t, int> from_a, from_b;
  for (const std::int64_t first : order) ++(first < 1000 ? from_a : from_b)[first];
  EXPECT_EQ(from_a.size(), 50u);  // 150 draws: three epochs of 50 samples
  for (const auto& [first, times] : from_a) EXPECT_EQ(times, 3) << first;
  EXPECT_EQ(from_b.size(), 30u);  // 50 draws: one epoch of 30 and 20 of the next
}

TEST(MegatronData, EvaluatesEachPrefixInItsShareAndNoSampleTwice) {
  IndexSetting setting;
  setting.add("a", {400}, 0);
  setting.add("b", {100}, 1000);
  setting.data.validation_fraction = 0.5;
  setting.train.evaluate_sequences = 1000;
  const TokenData data = setting.open();
  std::multiset<std::int64_t> seen;
  for (std::int64_t index = 0; index < data.evaluation_batches(); ++index) {
    const StepTokens step = data.evaluation_batch(index);
    for (std::int64_t i = 0; i < 4; ++i)
      if (row(step.targets, i)[0] >= 0) seen.insert(row(step.tokens, i)[0]);
  }
  EXPECT_EQ(seen.size(), std::set(seen.begin(), seen.end()).size());
  EXPECT_GE(seen.size(), 20u);
  EXPECT_EQ(std::ranges::count_if(seen, [](std::int64_t first) { return first >= 1000; }), 4);
}

TEST(MegatronData, RefusesAVocabularyThatDoesNotFitBeforeTheRunBegins) {
  IndexSetting setting;
  setting.add("a", {50});
  EXPECT_EQ(setting.refusal(50), "");
  EXPECT_SAYS(setting.refusal(30), "a.bin: token 30 at byte 60 is outside the vocabulary; expected 0 to 29");
}

// Found by the evaluation after the last step, it would cost the whole run.
TEST(MegatronData, RefusesAHeldOutTokenOutsideTheVocabularyBeforeTheRunBegins) {
  IndexSetting setting;
  setting.add("a", {400});
  setting.data.validation_fraction = 0.5;
  EXPECT_EQ(setting.refusal(400), "");
  EXPECT_SAYS(setting.refusal(390), "a.bin: token 390 at byte 780 is outside the vocabulary");
}

TEST(MegatronData, NamesThePrefixThatIsTooShort) {
  IndexSetting setting;
  setting.add("a", {50});
  setting.add("b", {10});
  EXPECT_SAYS(setting.refusal(), "b\" has 10 tokens to train on, fewer than one sample of 11 tokens");
  setting.data.megatron.pop_back();
  setting.data.split = "1,1";
  EXPECT_SAYS(setting.refusal(), "has 0 tokens to train on");  // half of one document
  EXPECT_SAYS(setting.refusal(),
              "data.split rounds to whole documents, and there is 1 document: use data.validation_fraction");
  setting.add("c", {50, 60, 70});
  setting.data.megatron.erase(setting.data.megatron.begin());
  setting.data.split = "99,1,0";
  EXPECT_SAYS(setting.refusal(), "has 0 tokens held out by data.split = \"99,1,0\"");
  EXPECT_SAYS(setting.refusal(), "and there are 3 documents: use data.validation_fraction instead");
}

TEST(MegatronData, PadsWithATokenOfTheVocabulary) {
  IndexSetting setting;
  setting.add("a", {43});
  setting.data.validation_fraction = 0.5;  // two samples
  const StepTokens step = setting.open(43).evaluation_batch(0);
  for (const std::int64_t token : row(step.tokens, 3)) EXPECT_LT(token, 43);
}

// The start may not depend on the size: a sparse .bin of 100 GiB, and a sparse .idx of 20 GB whose thousand
// million sequences are empty, but for the last.
TEST(MegatronData, OpensAHundredGigabytesAtOnce) {
  constexpr std::int64_t kBytes = std::int64_t{100} << 30;
  IndexSetting setting;
  const std::int64_t length = std::int64_t{1} << 30;
  IdxFields few;
  few.dtype = 1;
  few.documents = {0};
  for (std::int64_t i = 0; i < 100; ++i) {
    few.lengths.push_back(static_cast<std::int32_t>(length));
    few.offsets.push_back(i * length);
    few.documents.push_back(i + 1);
  }
  few.sequences = 100;
  few.entries = 101;
  setting.scratch.write("x.idx", few.bytes());
  setting.scratch.write("x.bin", "");
  std::filesystem::resize_file(setting.scratch / "x.bin", kBytes);
  setting.data.megatron = {setting.scratch / "x"};
  setting.data.split = "969,30,1";
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  EXPECT_EQ(data.samples(), (97 * length - 1) / 10);
  EXPECT_EQ(row(data.training_batch(data.samples() - 1).tokens, 0), std::vector<std::int64_t>(10, 0));
}

TEST(MegatronData, OpensAThousandMillionSequencesAtOnce) {
  constexpr std::uint64_t kSequences = 1'000'000'000;
  constexpr std::int32_t kLast = 1 << 20;
  IndexSetting setting;
  IdxFields fields;
  fields.dtype = 1;
  fields.documents.clear();
  fields.sequences = kSequences;
  fields.entries = kSequences + 1;
  setting.scratch.write("x.idx", fields.bytes());
  setting.scratch.write("x.bin", std::string(kLast, '\x07'));
  std::filesystem::resize_file(setting.scratch / "x.idx", 34 + 20 * kSequences + 8);
  std::fstream idx(setting.scratch / "x.idx", std::ios::in | std::ios::out | std::ios::binary);
  const auto put_at = [&](std::uint64_t position, auto value) {
    idx.seekp(static_cast<std::streamoff>(position));
    idx.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put_at(34 + 4 * (kSequences - 1), kLast);
  put_at(34 + 20 * kSequences, std::int64_t{kSequences});
  idx.close();
  setting.data.megatron = {setting.scratch / "x"};
  setting.train.shuffle = true;
  EXPECT_EQ(row(setting.open().training_batch(5).tokens, 0), std::vector<std::int64_t>(10, 7));
}

TEST(MegatronData, ItsContentHasItsDocumentsAndItsTargets) {
  IndexSetting setting;
  setting.add("one", {30, 30});
  const Content all = setting.open().content();
  EXPECT_EQ(setting.open().content(), all);
  setting.scratch.write("one.idx", idx_of({20, 40}).bytes());
  EXPECT_EQ(setting.open().content().tokens, all.tokens);
  EXPECT_NE(setting.open().content().marks, all.marks) << "other documents";
  setting.scratch.write("one.idx", idx_of({30, 30}).bytes());
  setting.scratch.write("one.mask", std::string(59, '\1') + std::string(1, '\0'));
  EXPECT_EQ(setting.open().content().tokens, all.tokens);
  EXPECT_NE(setting.open().content().marks, all.marks) << "other targets";
}

}  // namespace
}  // namespace penstock::train
