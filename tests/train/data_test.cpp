// SPDX-License-Identifier: Apache-2.0
#include "train/data/data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/error.h"
#include "failure.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "scratch.h"
#include "train/data/bigram.h"
#include "train/drawn_rows.h"

namespace penstock::train {
namespace {

// A text whose byte i tells where it stands: 251 is prime, so samples of other lengths begin with different
// bytes.
std::string counting_text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
  return text;
}

struct DataSetting {
  Scratch scratch;
  run::DataOptions data;
  run::TrainOptions train;

  explicit DataSetting(std::string_view text, Tokens seq_len = 10) {
    scratch.write("corpus.txt", text);
    data.text = scratch / "corpus.txt";
    data.seq_len = seq_len;
    data.validation_fraction = 0;
    train.batch = 4;
    train.micro_batch = 2;
    train.shuffle = false;
  }
  TokenData open() const { return TokenData(data, train, files::kByteVocabulary); }
};

TEST(TextData, GivesEveryTokenTheNextOneAsItsTarget) {
  const DataSetting setting(counting_text(101));
  const StepTokens step = setting.open().training_batch(2);
  EXPECT_EQ(step.tokens.size(), 2u);
  EXPECT_EQ(step.target_count, 40);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t k = 0; k < 10; ++k) {
      EXPECT_EQ(row(step.tokens, i)[k], (2 + i) * 10 + k);
      EXPECT_EQ(row(step.targets, i)[k], (2 + i) * 10 + k + 1);
    }
  }
}

// Of a short text every byte counts, of a long one those of stretches that reach from end to end.
TEST(TextData, ItsContentIsThatOfItsTokens) {
  const auto content = [](const std::string& text) { return DataSetting(text).open().content(); };
  for (const std::size_t size : {std::size_t{101}, std::size_t{9000}, std::size_t{3'000'000}}) {
    const std::string text = counting_text(size);
    EXPECT_EQ(content(text), content(text));
    for (const std::size_t byte : {std::size_t{0}, std::size_t{50}, size - 1}) {
      std::string other = text;
      other[byte] ^= 1;
      EXPECT_NE(content(other), content(text)) << byte << " of " << size;
    }
    EXPECT_NE(content(text.substr(1) + "a"), content(text)) << size;
  }
  std::string text = counting_text(9000);
  for (std::size_t byte = 0; byte < text.size(); byte += 97) {
    std::string other = text;
    other[byte] ^= 1;
    EXPECT_NE(content(other), content(text)) << byte;
  }
}

TEST(TextData, ItsContentTellsHeldOutTokensFromOthers) {
  const auto content = [](const std::string& text) {
    DataSetting setting(text);
    setting.data.validation_fraction = 0.5;
    return setting.open().content();
  };
  const std::string text = counting_text(200);
  std::string other = text;
  other[150] ^= 1;
  EXPECT_EQ(content(other).tokens, content(text).tokens);
  EXPECT_NE(content(other).held_out, content(text).held_out);
}

// Ranks that are threads share the data.
TEST(TextData, TellsItsContentToSeveralThreads) {
  const DataSetting setting(counting_text(9000));
  const TokenData data = setting.open();
  std::vector<Content> contents(4);
  std::vector<std::thread> threads;
  for (Content& content : contents) threads.emplace_back([&] { content = data.content(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(contents, std::vector<Content>(4, setting.open().content()));
}

// In order, with the targets of all counted by each.
TEST(TextData, IsSharedOutOverReplicasWithoutGapOrRepetition) {
  DataSetting setting(counting_text(101));
  setting.train.batch = 8;
  const TokenData data = setting.open();
  const StepTokens whole = data.training_batch(16);
  for (const std::int64_t replicas : {1, 2, 4}) {
    for (std::int64_t replica = 0; replica < replicas; ++replica) {
      const StepTokens part = data.training_batch(16, {replica, replicas});
      ASSERT_EQ(part.tokens.size(), whole.tokens.size() / static_cast<std::size_t>(replicas));
      EXPECT_EQ(part.target_count, whole.target_count);
      for (std::int64_t i = 0; i < 8 / replicas; ++i) {
        EXPECT_EQ(row(part.tokens, i), row(whole.tokens, replica * 8 / replicas + i));
        EXPECT_EQ(row(part.targets, i), row(whole.targets, replica * 8 / replicas + i));
      }
    }
  }
}

TEST(TextData, LeavesTheLastTokenWithoutTargetWhenScoredAsHuggingFaceDoes) {
  DataSetting setting(counting_text(100));
  setting.train.loss_targets = "s-1";
  const TokenData data = setting.open();
  const StepTokens step = data.training_batch(0);
  EXPECT_EQ(data.samples(), 10);
  EXPECT_EQ(step.target_count, 36);
  EXPECT_EQ(row(step.targets, 1), (std::vector<std::int64_t>{11, 12, 13, 14, 15, 16, 17, 18, 19, -1}));
}

TEST(TextData, CountsSamplesThatOverlapByOneToken) {
  for (std::size_t size = 11; size < 60; ++size) {
    const std::int64_t samples = DataSetting(counting_text(size)).open().samples();
    EXPECT_LE(samples * 10 + 1, size);
    EXPECT_GT((samples + 1) * 10 + 1, size);
  }
}

TEST(TextData, DrawsEverySampleOnceAnEpochInANewOrder) {
  DataSetting setting(counting_text(121));  // 12 samples, 3 batches an epoch
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  std::set<std::vector<std::int64_t>> orders;
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    std::vector<std::int64_t> order;
    for (std::int64_t batch = 0; batch < 3; ++batch) {
      const StepTokens step = data.training_batch(epoch * 12 + batch * 4);
      for (std::int64_t i = 0; i < 4; ++i) order.push_back(row(step.tokens, i)[0]);
    }
    EXPECT_EQ(std::set(order.begin(), order.end()).size(), 12u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 5u);
}

TEST(TextData, GivesTheSameSamplesHoweverABatchIsCutIntoMicroBatches) {
  DataSetting setting(counting_text(500));
  setting.train.shuffle = true;
  const StepTokens two = setting.open().training_batch(8);
  setting.train.micro_batch = 4;
  const StepTokens four = setting.open().training_batch(8);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(row(two.tokens, i), row(four.tokens, i));
  setting.train.seed = 2;
  EXPECT_NE(row(setting.open().training_batch(8).tokens, 0), row(two.tokens, 0));
}

TEST(TextData, ContinuesFromAnySampleAsIfItHadNeverStopped) {
  DataSetting setting(counting_text(1000));
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  const StepTokens whole = data.training_batch(20), resumed = data.training_batch(22);
  EXPECT_EQ(row(whole.tokens, 2), row(resumed.tokens, 0));
  EXPECT_EQ(row(whole.targets, 3), row(resumed.targets, 1));
}

TEST(TextData, HoldsOutTheEndAndEvaluatesItInOrder) {
  DataSetting setting(counting_text(200));
  setting.data.validation_fraction = 0.305;  // 61 bytes: 6 samples, the second batch half padding
  const TokenData data = setting.open();
  EXPECT_EQ(data.training_text().size(), 139u);
  EXPECT_EQ(data.evaluation_batches(), 2);
  EXPECT_EQ(data.evaluation_batch(0).target_count, 40);
  const StepTokens last = data.evaluation_batch(1);
  EXPECT_EQ(last.target_count, 20);
  EXPECT_EQ(row(last.tokens, 1)[0], 139 + 50);
  EXPECT_EQ(row(last.tokens, 2), std::vector<std::int64_t>(10, files::kPadding));
  EXPECT_EQ(row(last.targets, 3), std::vector<std::int64_t>(10, -1));
}

TEST(TextData, NeverTrainsOnWhatItHoldsOut) {
  DataSetting setting(std::string(500, 'a') + std::string(500, 'b'));
  setting.data.validation_fraction = 0.5;
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  for (std::int64_t first = 0; first < 200; first += 4) {
    const StepTokens step = data.training_batch(first);
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(row(step.targets, i), std::vector<std::int64_t>(10, 'a'));
  }
}

TEST(TextData, EvaluatesAtMostAsManySequencesAsAsked) {
  DataSetting setting(counting_text(2000));
  setting.data.validation_fraction = 0.5;
  setting.train.evaluate_sequences = 5;
  const TokenData data = setting.open();
  EXPECT_EQ(data.evaluation_batches(), 2);
  EXPECT_EQ(data.evaluation_batch(1).target_count, 10);
  setting.data.validation_fraction = 0;
  EXPECT_EQ(setting.open().evaluation_batches(), 0);
}

TEST(TextData, RefusesATextShorterThanOneSequence) {
  for (const std::size_t size : {0u, 1u, 10u}) {
    const DataSetting setting(counting_text(size));
    const std::string refused = failure<InputError>([&] { setting.open(); });
    EXPECT_NE(refused.find("has " + std::to_string(size) + (size == 1 ? " byte" : " bytes") +
                           " to train on, fewer than one sample of 11 tokens"),
              std::string::npos)
        << refused;
  }
  EXPECT_EQ(DataSetting(counting_text(11)).open().samples(), 1);
}

TEST(TextData, RefusesAHeldOutPartShorterThanOneSequence) {
  DataSetting setting(counting_text(500));
  setting.data.validation_fraction = 0.01;
  const std::string refused = failure<InputError>([&] { setting.open(); });
  EXPECT_NE(refused.find("5 bytes held out by data.validation_fraction = 0.01"), std::string::npos)
      << refused;
  const TokenData trained(setting.data, setting.train, files::kByteVocabulary, {.evaluates = false});
  EXPECT_EQ(trained.evaluation_batches(), 0) << "without an evaluation that part is not read";
}

TEST(TextData, NamesAMissingText) {
  DataSetting setting(counting_text(500));
  setting.data.text += ".gz";
  EXPECT_NE(failure<InputError>([&] { setting.open(); }).find("corpus.txt.gz"), std::string::npos);
}

TEST(TextData, OpensAHundredGigabytesAtOnce) {
  DataSetting setting("");
  std::filesystem::resize_file(setting.data.text, std::uintmax_t{100} << 30);
  setting.train.shuffle = true;
  const TokenData data = setting.open();
  EXPECT_EQ(data.samples(), ((std::int64_t{100} << 30) - 1) / 10);
  EXPECT_EQ(row(data.training_batch(data.samples() - 1).tokens, 0), std::vector<std::int64_t>(10, 0));
}

TEST(Bigram, KnowsATextOfTwoLetters) {
  // 'a' and 'b' take turns: after the 450 letters of the training part, 'b' has followed 'a' 225 times.
  std::string text;
  for (int i = 0; i < 250; ++i) text += "ab";
  DataSetting setting(text, 49);
  setting.data.validation_fraction = 0.1;
  const double after_a = std::log((225.0 + 256) / 226), after_b = std::log((224.0 + 256) / 225);
  int parts = 0;
  EXPECT_NEAR(bigram_loss(setting.open(), [&] { ++parts; }), (25 * after_a + 24 * after_b) / 49, 1e-12);
  EXPECT_GE(parts, 2) << "of the text, and of each batch";
}

TEST(Tokenizer, TurnsBytesIntoTokensAndBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::vector<std::int64_t> tokens = files::encode_bytes(all);
  EXPECT_EQ(files::decode_bytes(tokens), all);
  tokens.insert(tokens.begin(), {files::kBeginOfText, files::kPadding, -1, 1000});
  EXPECT_EQ(files::decode_bytes(tokens), all);
}

}  // namespace
}  // namespace penstock::train
