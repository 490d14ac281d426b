// SPDX-License-Identifier: Apache-2.0
// What is left when saving fails at any point, and that damage is found wherever it is.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "files/checksum.h"
#include "scratch.h"
#include "train/checkpoint/saved_state.h"
#include "train/saved_run.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

run::Run tiny_plan() {
  auto options = small_options("slimpipe", 1, 2, "bf16");
  options.model.shape = {.layers = 1, .hidden = 4, .ffn = 4, .heads = 1, .kv_heads = 1};
  return planned(options);
}

// A rank whose state can be saved again and again.
class OneRank {
 public:
  void save(const std::string& directory, std::int64_t step) {
    auto saver = saver_of(run_, directory, trainer_, *world_, 1);
    saver.begin(facts_of(run_, step, trainer_));
    saver.settle();
  }

 private:
  run::Run run_ = tiny_plan();
  std::unique_ptr<comm::Communicator> world_ = comm::make_single();
  train::Trainer trainer_{run_, *world_};
};

int calls_of_a_save(OneRank& rank) {
  const Scratch scratch;
  rank.save(scratch.path(), 1);
  const FaultyFiles counting;
  rank.save(scratch.path(), 2);
  return counting.calls();
}

// The newest checkpoint, after what is half-written has been cleared away; it must be whole.
std::int64_t newest_whole(const std::string& directory) {
  const train::CheckpointDirectory checkpoints(directory);
  checkpoints.clear_partial();
  const auto steps = checkpoints.steps();
  if (steps.empty()) return 0;
  for (const std::int64_t step : steps) verify(directory, step);
  return steps.back();
}

TEST(CheckpointKilled, AtAnyCallLeavesAWholeOne) {
  OneRank rank;
  const int calls = calls_of_a_save(rank);
  ASSERT_GT(calls, 40);
  std::int64_t newest = 1;
  for (int at = 0; at <= calls; ++at) {
    const Scratch scratch;
    {
      const FaultyFiles quick;
      rank.save(scratch.path(), 1);
    }
    {
      const FaultyFiles killed(at, EIO, FaultyFiles::Fault::ForGood);
      failure<RunError>([&] { rank.save(scratch.path(), 2); });
    }
    const std::int64_t found = newest_whole(scratch.path());
    EXPECT_GE(found, newest) << "killed at call " << at << " of " << calls;
    newest = found;
  }
  EXPECT_EQ(newest, 2);
}

TEST(CheckpointOnAFailingDisk, NamesThePathAndKeepsTheOldOne) {
  OneRank rank;
  const int calls = calls_of_a_save(rank);
  int failures = 0, wanting = 0;
  for (int at = 0; at < calls; ++at) {
    const Scratch scratch;
    std::string failed;
    {
      const FaultyFiles quick;
      rank.save(scratch.path(), 1);
    }
    {
      const FaultyFiles full(at, ENOSPC);
      failed = failure<RunError>([&] { rank.save(scratch.path(), 2); });
    }
    if (failed.empty()) continue;  // flushing a directory and removing old files may fail
    ++failures;
    wanting += failed.find(" bytes wanted: No space left on device") != std::string::npos;
    EXPECT_EQ(failed.find(scratch.path()), 0u) << failed;
    EXPECT_FALSE(fs::exists(scratch / "step-000002.partial")) << "the disk's space is not given back";
    EXPECT_EQ(newest_whole(scratch.path()), 1) << at;
  }
  EXPECT_GT(failures, 30);
  EXPECT_GT(wanting, 10);
}

TEST(CheckpointOnAFailingDisk, NamesADirectoryThatIsReadOnly) {
  OneRank rank;
  const Scratch scratch;
  const FaultyFiles read_only(0, EROFS, FaultyFiles::Fault::ForGood);
  const std::string failed = failure<RunError>([&] { rank.save(scratch / "checkpoints", 1); });
  EXPECT_NE(failed.find("checkpoints cannot be made: Read-only file system"), std::string::npos) << failed;
}

TEST(CheckpointOnAFailingDisk, IsWholeThoughWritesAreShort) {
  OneRank rank;
  const Scratch scratch;
  FaultyFiles slow;
  slow.write_at_most(1000);
  rank.save(scratch.path(), 1);
  EXPECT_EQ(newest_whole(scratch.path()), 1);
}

// Every piece takes a while.
class LingeringDisk final : public FaultyFiles {
 public:
  ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) override {
    const ssize_t written = FaultyFiles::write_at(descriptor, bytes, offset);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return written;
  }
  int flush(int) override {
    ++flushes;
    return 0;
  }
  std::atomic<int> flushes = 0;
};

// A rank that fails tells the others no later than it must.
TEST(CheckpointGivenUp, IsLeftInTheMiddleOfAFile) {
  const Scratch scratch;
  const run::Run run = tiny_plan();
  const auto world = comm::make_single();
  train::Trainer trainer(run, *world);
  LingeringDisk disk;
  disk.close_gate();
  {
    auto saver = saver_of(run, scratch.path(), trainer, *world);
    saver.begin(facts_of(run, 1, trainer));
    disk.open_gate();
  }
  EXPECT_EQ(disk.flushes, 0);
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    OneRank().save(scratch_.path(), 1);
    whole_ = files_below(checkpoint_);
    ASSERT_EQ(whole_.size(), 8u);
    ASSERT_EQ(failure<InputError>([&] { verify(scratch_.path(), 1); }), "");
  }

  // What is said about the checkpoint when one file has these bytes.
  std::string said_of(const std::string& file, const std::string& bytes) {
    scratch_.write("step-000001/" + file, bytes);
    const std::string said = failure<InputError>([&] { verify(scratch_.path(), 1); });
    scratch_.write("step-000001/" + file, whole_.at(file));
    return said;
  }

  // Every place where numbers of the format stand, many others.
  static std::size_t stride(std::size_t offset) { return offset < 16 ? 1 : 67; }

  Scratch scratch_;
  std::string checkpoint_ = scratch_ / "step-000001";
  std::map<std::string, std::string> whole_;
};

TEST_F(DamagedCheckpoint, IsFoundByAnyFlippedBit) {
  for (const auto& [file, bytes] : whole_) {
    for (std::size_t offset = 0; offset < bytes.size(); offset += stride(offset)) {
      std::string flipped = bytes;
      flipped[offset] = static_cast<char>(flipped[offset] ^ (1 << offset % 8));
      const std::string said = said_of(file, flipped);
      ASSERT_NE(said.find(file), std::string::npos) << file << " at " << offset << ": " << said;
    }
  }
}

TEST_F(DamagedCheckpoint, IsFoundWhereverItIsCutShort) {
  for (const auto& [file, bytes] : whole_) {
    for (std::size_t length = 0; length < bytes.size(); length += stride(length)) {
      const std::string said = said_of(file, bytes.substr(0, length));
      ASSERT_NE(said.find(file), std::string::npos) << file << " of " << length << " bytes: " << said;
    }
    EXPECT_NE(said_of(file, bytes + "x").find(file), std::string::npos);
  }
}

TEST_F(DamagedCheckpoint, NamesAMissingFile) {
  for (const auto& [file, bytes] : whole_) {
    fs::remove(fs::path(checkpoint_) / file);
    const std::string said = failure<InputError>([&] { verify(scratch_.path(), 1); });
    EXPECT_NE(said.find(file + ": cannot be opened"), std::string::npos) << said;
    scratch_.write("step-000001/" + file, bytes);
  }
}

TEST_F(DamagedCheckpoint, IsNotTakenForAModelWhateverItIsCalled) {
  const std::string aside = scratch_ / "step-000001.damaged";
  fs::rename(checkpoint_, aside);
  const auto said = [&] { return failure<InputError>([&] { train::verify_weights(aside, 0, 1); }); };
  EXPECT_EQ(said(), "");
  for (const auto& [file, bytes] : whole_) {
    std::string flipped = bytes;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    scratch_.write("step-000001.damaged/" + file, flipped);
    if (file.starts_with("optimizer")) {
      EXPECT_EQ(said(), "") << "a model has no moments";
    } else {
      EXPECT_NE(said().find(file), std::string::npos) << file << ": " << said();
      const bool of_facts = file == train::kCheckpointFacts;
      EXPECT_EQ(said().find("; rename that file") != std::string::npos, of_facts) << said();
    }
    scratch_.write("step-000001.damaged/" + file, bytes);
  }
  scratch_.write("step-000001.damaged/checkpoint.json", "{\"of\": \"another program\"}");
  EXPECT_NE(said().find("; rename that file, and the weights are read without checksums"), std::string::npos);
  fs::remove(fs::path(aside) / train::kCheckpointFacts);
  EXPECT_EQ(said(), "") << "others have no checksums";
  fs::create_symlink("none", fs::path(aside) / train::kCheckpointFacts);
  EXPECT_NE(said().find("checkpoint.json: cannot be opened"), std::string::npos) << said();
}

// A page that cannot be read ends a process that accesses it in a mapping.
TEST_F(DamagedCheckpoint, IsFoundWhereItsBytesCannotBeReadAnyMore) {
  const auto facts = train::read_checkpoint_facts(train::CheckpointDirectory(scratch_.path()), 1);
  int calls = 0, last = 0;
  const auto cut_short = [&] {
    if (++calls != last) return;
    for (const auto& [file, bytes] : whole_) fs::resize_file(fs::path(checkpoint_) / file, 1);
  };
  const auto verifies = [&] { train::verify_checkpoint(checkpoint_, facts, 0, 1, cut_short); };
  const auto loads = [&] {
    train::state_in_files(checkpoint_)
        ->for_tensors(
            facts, [](const std::string&) { return true; },
            [&](const train::SavedState::Place&, const files::StoredTensor*) { cut_short(); });
  };
  for (const std::function<void()>& reads : std::vector<std::function<void()>>{verifies, loads}) {
    calls = last = 0;
    reads();
    int inside = 0;
    const int tensors = calls;
    for (last = 1; last < tensors; ++last) {
      calls = 0;
      const std::string said = failure<InputError>(reads);
      EXPECT_NE(said, "") << last;
      inside += said.find("safetensors: ends at byte ") != std::string::npos;
      for (const auto& [file, bytes] : whole_) scratch_.write("step-000001/" + file, bytes);
    }
    EXPECT_GT(inside, 3);
  }
}

TEST_F(DamagedCheckpoint, IsOneWhoseNameIsAnothersStep) {
  fs::rename(checkpoint_, scratch_ / "step-000009");
  EXPECT_NE(failure<InputError>([&] { verify(scratch_.path(), 9); }).find("is from step 1"),
            std::string::npos);
}

TEST_F(DamagedCheckpoint, IsSetAsideSoThatItsStepCanBeSavedAgain) {
  const train::CheckpointDirectory checkpoints(scratch_.path());
  OneRank().save(scratch_.path(), 2);
  checkpoints.set_aside_after(1);
  EXPECT_TRUE(fs::exists(scratch_ / "step-000002.damaged"));
  checkpoints.set_aside_after(1);
  OneRank().save(scratch_.path(), 2);
  checkpoints.set_aside_after(1);
  EXPECT_TRUE(checkpoints.steps().empty()) << "only one was kept";
}

TEST(CheckpointFacts, ReadBackAsTheyWereWritten) {
  train::CheckpointFacts facts{.step = 7,
                               .samples_drawn = 1LL << 60,
                               .content = 1,
                               .marks = 2,
                               .held_out = 3,
                               .loss = 0.1,
                               .settings = {{"a", "\"x\n\""}}};
  facts.files.push_back({"file", 0xffffffffffffffff, {{"t", 0}}});
  EXPECT_EQ(train::parse_checkpoint_facts(train::to_json(facts), "here"), facts);
  facts.loss = std::nan("");
  EXPECT_FALSE(train::parse_checkpoint_facts(train::to_json(facts), "here").loss);
}

TEST(CheckpointFacts, RefuseWhatOnlyLooksWhole) {
  for (const char* body : {"[1,\n", "{\n", "{\"form\": \"penstock checkpoint 1\",\n",
                           "{\"form\": \"penstock checkpoint 2\",\n", "{\"form\": 1,\n"}) {
    const std::string text =
        body + ("  \"checksum\": \"" + files::checksum_text(files::checksum(std::string_view(body)))) +
        "\"\n}\n";
    EXPECT_NE(failure<InputError>([&] { train::parse_checkpoint_facts(text, "here"); }), "") << body;
  }
}

// The text of these facts with one part of it replaced, sealed again.
std::string rewritten(std::string text, std::string_view part, std::string_view other) {
  text.resize(text.find("  \"checksum\""));
  text.replace(text.find(part), part.size(), other);
  return text + "  \"checksum\": \"" + files::checksum_text(files::checksum(text)) + "\"\n}\n";
}

TEST(CheckpointFacts, RefuseChecksumsOfAnotherKind) {
  const std::string text = train::to_json(train::CheckpointFacts{.step = 7});
  const auto said_of = [](const std::string& facts) {
    return failure<InputError>([&] { train::parse_checkpoint_facts(facts, "here"); });
  };
  EXPECT_EQ(said_of(text), "");
  EXPECT_EQ(
      said_of(rewritten(text, "checkpoint 2", "checkpoint 1")),
      "here: is of an earlier version (\"penstock checkpoint 1\"), whose tensors have checksums of another "
      "kind; this program reads \"penstock checkpoint 2\"");
  EXPECT_EQ(said_of(rewritten(text, "words of 32 bits", "words")),
            "here: has tensor checksums of the kind \"words, polynomial modulo 2^61-1\"; this program reads "
            "\"words of 32 bits, polynomial modulo 2^61-1\"");
}

}  // namespace
}  // namespace penstock::testing
