// SPDX-License-Identifier: Apache-2.0
// Training with records that leave: the same bits, the predicted bytes, and a clear end when a copy fails.
#include <gtest/gtest.h>

#include <cerrno>

#include "failure.h"
#include "files/file_system.h"
#include "nn/tensor_checks.h"
#include "schedule/generators/generator.h"
#include "scratch.h"
#include "train/equal_runs.h"
#include "train/small_run.h"
#include "train/trainable_schedules.h"

namespace penstock::testing {
namespace {

using model::Category;

// More than four records in flight on the first device of every schedule.
run::Options offload_options(const schedule::Generator& generator, const std::string& precision) {
  const bool sliced = generator.sliced_sibling.empty();
  const int devices = sliced || generator.default_chunks > 1 ? 4 : 8;
  auto options = small_options(std::string(generator.name), devices, sliced ? 4 : 1, precision);
  if (generator.name != "v-min") return options;
  options.parallel.pp = 8;  // two thirds of a device's chunks in flight: on four devices just four
  options.model.shape.layers = 16;
  return options;
}

Bytes bytes_copied(const run::Run& run) {
  Bytes bytes = 0;
  for (const schedule::DeviceProgram& device : run.program.devices) {
    for (const schedule::Op& op : device.ops) bytes += op.kind == schedule::OpKind::Offload ? op.bytes : 0;
  }
  return bytes;
}

class OffloadOf : public ::testing::TestWithParam<schedule::Generator> {};

INSTANTIATE_TEST_SUITE_P(Schedules, OffloadOf, ::testing::ValuesIn(trainable_schedules()), schedule_name);

TEST_P(OffloadOf, ChangesNoBit) {
  const Scratch scratch;
  for (const char* policy : {"none", "balanced", "full"}) {
    auto options = offload_options(GetParam(), "bf16");
    options.memory.policy = policy;
    const Trained plain = train_steps(planned(options), 2);
    for (const auto& [target, share] : {std::pair{"host", 0.37}, {"disk", 0.63}, {"host", 1.0}}) {
      if (share == 1.0 && policy != std::string("none")) continue;
      options.memory.offload_to = target;
      options.memory.offload_dir = target == std::string("disk") ? scratch.path() : "";
      options.memory.offload.number = share;
      SCOPED_TRACE(std::string(policy) + " to " + target + ", " + std::to_string(share));
      const run::Run run = planned(options);
      EXPECT_GT(bytes_copied(run), 0);
      expect_equal_runs(train_steps(run, 2), plain);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

// Peaks to the byte.
void expect_offload_predicted(const run::Run& run) {
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    for (std::int64_t step = 1; step <= 2; ++step) {
      trainer.step(step, tokens_of(drawn_batches(run, static_cast<std::uint64_t>(step))));
    }
    const model::MemoryPeaks& predicted = run.predicted[world.rank()];
    EXPECT_EQ(trainer.ledger().peak(Category::Activations), predicted.activations) << world.rank();
    EXPECT_EQ(trainer.copies().away_peak, predicted.host + predicted.disk);
    EXPECT_EQ(trainer.ledger().live(Category::Activations), 0);
  });
}

TEST_P(OffloadOf, PeaksAsPredictedAndNeverAboveNoOffload) {
  for (const char* precision : {"f32", "bf16"}) {
    auto options = offload_options(GetParam(), precision);
    const Bytes before = planned(options).predicted.front().activations;
    for (const double share : {0.25, 0.6, 1.0}) {
      options.memory.offload.number = share;
      const run::Run run = planned(options);
      EXPECT_LT(run.predicted.front().activations, before);
      expect_offload_predicted(run);
    }
  }
}

// Runs large enough that a scratch buffer of a library is a small share.
TEST(Offload, LeavesThePredictionOfTheWholeWithinTwoPercent) {
  const Scratch scratch;
  for (const char* precision : {"f32", "bf16"}) {
    for (const char* policy : {"none", "balanced", "full"}) {
      for (const double share : {0.3, 1.0}) {
        SCOPED_TRACE(std::string(precision) + ", " + policy + ", " + std::to_string(share));
        auto options = small_options("slimpipe", 2, 8, precision);
        options.model.shape = {.layers = 4, .hidden = 128, .ffn = 352, .heads = 4, .kv_heads = 2};
        options.data.seq_len = 1024;
        options.train.batch = 4;
        options.memory.policy = policy;
        options.memory.offload.number = share;
        options.memory.offload_to = share < 1 ? "disk" : "host";
        options.memory.offload_dir = share < 1 ? scratch.path() : "";
        const run::Run run = planned(options);
        expect_offload_predicted(run);
        on_ranks(run, [&](comm::Communicator& world) {
          train::Trainer trainer(run, world);
          trainer.step(1, tokens_of(drawn_batches(run, 1)));
          const auto& predicted = run.predicted[world.rank()];
          const auto measured = static_cast<double>(trainer.ledger().peak_total());
          EXPECT_NEAR(static_cast<double>(predicted.total()) / measured, 1.0, 0.02) << world.rank();
        });
      }
    }
  }
}

TEST(Offload, OfInterleavedSlimpipeChangesNoBitAndPeaksAsPredicted) {
  auto options = small_options("slimpipe", 2, 4, "bf16");
  options.schedule.chunks = 2;
  const Trained plain = train_steps(planned(options), 2);
  options.memory.offload.number = 0.5;
  expect_equal_runs(train_steps(planned(options), 2), plain);
  expect_offload_predicted(planned(options));
}

// A disk on which one kind of call goes wrong.
class FailingDisk final : public files::FileSystem {
 public:
  enum class Fault { Write, ShortWrite, NoProgress, Read, EarlyEnd, Open, Room };
  explicit FailingDisk(Fault fault) : fault_(fault), replaced_(*this) {}

  int open_unnamed(const std::string& directory) override {
    return fault_ == Fault::Open ? fail(EACCES) : FileSystem::open_unnamed(directory);
  }
  int reserve(int descriptor, std::int64_t bytes) override {
    return fault_ == Fault::Room ? fail(ENOSPC) : FileSystem::reserve(descriptor, bytes);
  }
  ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) override {
    if (fault_ == Fault::Write) return fail(EIO);
    if (fault_ == Fault::NoProgress) return 0;
    if (fault_ == Fault::ShortWrite) bytes = bytes.first((bytes.size() + 1) / 2);
    return FileSystem::write_at(descriptor, bytes, offset);
  }
  ssize_t read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset) override {
    if (fault_ == Fault::Read) return fail(EIO);
    if (fault_ == Fault::EarlyEnd) return 0;
    return FileSystem::read_at(descriptor, bytes, offset);
  }

 private:
  static int fail(int error) {
    errno = error;
    return -1;
  }
  Fault fault_;
  files::ReplacedFileSystem replaced_;
};

run::Run to_disk(const Scratch& scratch, int devices, int replicas = 1) {
  auto options = small_options("slimpipe", devices, 8, "bf16");
  options.parallel.dp = replicas;
  options.memory.offload.number = 0.5;
  options.memory.offload_to = "disk";
  options.memory.offload_dir = scratch.path();
  return planned(options);
}

TEST(OffloadToDisk, ThatFailsSaysWhereWhyAndHowManyBytes) {
  using Fault = FailingDisk::Fault;
  const std::pair<Fault, const char*> cases[] = {
      {Fault::Write, "cannot be written"},  {Fault::NoProgress, "No space left on device"},
      {Fault::Read, "cannot be read back"}, {Fault::EarlyEnd, "Input/output error"},
      {Fault::Open, "Permission denied"},   {Fault::Room, "finds no room on its disk"},
  };
  for (const auto& [fault, says] : cases) {
    const Scratch scratch;
    const run::Run run = to_disk(scratch, 1);
    const FailingDisk disk(fault);
    const std::string message = failure<RunError>([&] { train_steps(run, 1); });
    EXPECT_NE(message.find(scratch.path() + "/offload of rank 0 "), std::string::npos) << message;
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_NE(message.find(" bytes wanted: "), std::string::npos) << message;
  }
}

TEST(OffloadToDisk, EndsEveryRankWhenOneFails) {
  const Scratch scratch;
  const FailingDisk disk(FailingDisk::Fault::Write);
  const std::string message = failure<RunError>([&] { train_steps(to_disk(scratch, 2), 1); });
  EXPECT_NE(message.find("offload of rank "), std::string::npos) << message;
}

// Of one rank's thread alone.
class DiskOfOneRank final : public files::FileSystem {
 public:
  int open_unnamed(const std::string& directory) override {
    if (!fails) return FileSystem::open_unnamed(directory);
    errno = EACCES;
    return -1;
  }
  inline static thread_local bool fails = false;

 private:
  files::ReplacedFileSystem replaced_{*this};
};

// Replicas have the same device of different pipelines.
TEST(OffloadToDisk, ThatFailsNamesTheRankOfTheWorld) {
  const Scratch scratch;
  const run::Run run = to_disk(scratch, 1, 2);
  DiskOfOneRank disk;
  const std::string message = failure<RunError>([&] {
    on_ranks(run, [&](comm::Communicator& world) {
      DiskOfOneRank::fails = world.rank() == 1;
      const train::Trainer trainer(run, world);
      world.barrier();
    });
  });
  EXPECT_NE(message.find("/offload of rank 1 "), std::string::npos) << message;
}

TEST(OffloadToDisk, GoesOnWhereADiskTakesHalfOfEachWrite) {
  const Scratch scratch;
  const run::Run run = to_disk(scratch, 2);
  const Trained plain = train_steps(run, 2);
  const FailingDisk disk(FailingDisk::Fault::ShortWrite);
  expect_equal_runs(train_steps(run, 2), plain);
}

}  // namespace
}  // namespace penstock::testing
