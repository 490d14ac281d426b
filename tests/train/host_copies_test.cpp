// SPDX-License-Identifier: Apache-2.0
// Copies of a run's state in hosts' memory: the newest whole one is found and loaded on any mesh, to the bit.
// (Copies on other hosts: tests/hosts.)
#include "train/checkpoint/host_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "failure.h"
#include "files/mapped_file.h"
#include "scratch.h"
#include "train/checkpoint/state_copy.h"
#include "train/copied_run.h"
#include "write_path.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

TEST(HostCopies, AreLoadedOnEveryMeshToTheBit) {
  const Scratch memory;
  const auto states = copied_steps(sharded_plan(2, 2, 2, "weights"), memory / "copies", 1, 3);
  const auto found = found_in(memory / "copies");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->facts.step, 3);
  EXPECT_EQ(found->facts.samples_drawn, 3 * small_options("slimpipe", 1, 4, "bf16").train.batch);
  for (const run::Run& other : {sharded_plan(2, 2, 2, "weights"), sharded_plan(1, 1, 1, "off"),
                                sharded_plan(4, 1, 2, "optimizer"), sharded_plan(2, 1, 1, "auto")})
    expect_same(loaded_from(*found, other), states.back());
}

TEST(HostCopies, AreOfTheStepsThatWereAskedFor) {
  const Scratch memory;
  const auto states = copied_steps(sharded_plan(2, 1, 1, "off"), memory / "copies", 2, 5);
  const auto found = found_in(memory / "copies");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->facts.step, 4);
  expect_same(loaded_from(*found, sharded_plan(2, 1, 1, "off")), states[3]);
  EXPECT_TRUE(found_in(memory / "copies", 3));
  EXPECT_FALSE(found_in(memory / "copies", 4)) << "none is later";
  EXPECT_FALSE(found_in(memory / "copies", 0, "00000000000000ce")) << "another run's";
  EXPECT_FALSE(found_in(memory / "none"));
}

// The lowest bit of the byte behind these words.
void flip_behind(const fs::path& file, std::string_view words) {
  std::string bytes = contents_of(file);
  const std::size_t place = bytes.find(words);
  ASSERT_NE(place, std::string::npos) << file;
  char& byte = bytes[place + words.size()];
  byte = static_cast<char>(byte ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

// What a process that is killed, or a host that is lost, leaves of the newest copy.
TEST(HostCopies, GoBackToTheStateOfWhichEveryPartIsWhole) {
  const auto spoil = [](const fs::path& file, int way) {
    if (way == 0) fs::remove(file);
    if (way == 1) fs::resize_file(file, fs::file_size(file) - 1);
    if (way >= 2 && way < 5) {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      // The mark that it is whole; the first byte of the text; the last of the tensors.
      stream.seekp(way == 2 ? 0 : way == 3 ? 32 : static_cast<std::streamoff>(fs::file_size(file)) - 1);
      stream.put('\x5a');
    }
    if (way == 5) flip_behind(file, "\"runs\":[[");          // where a range begins
    if (way == 6) flip_behind(file, "samples_drawn\\\": ");  // in what rank 0 tells of the checkpoint
  };
  const run::Run run = sharded_plan(2, 1, 2, "optimizer");
  for (int way = 0; way < 7; ++way) {
    SCOPED_TRACE(way);
    const Scratch memory;
    const auto states = copied_steps(run, memory / "copies", 1, 3);
    const auto files = files_in(memory / "copies");
    ASSERT_EQ(files.size(), 8) << "two of each rank";
    const std::size_t first = way < 5 ? 2 : 0;  // of rank 1, or of rank 0
    spoil(files[first], way);                   // steps 1 and 3 were in the first slot
    const auto found = found_in(memory / "copies");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->facts.step, 2);
    expect_same(loaded_from(*found, run), states[1]);
    spoil(files[first + 1], way);
    EXPECT_FALSE(found_in(memory / "copies"));
  }
}

// As a host to which copies were brought has it.
TEST(HostCopies, OfAPartThatIsTwiceInMemoryNeedToBeWholeOnce) {
  const run::Run run = sharded_plan(2, 1, 1, "off");
  for (const bool first : {true, false}) {
    const Scratch memory;
    copied_steps(run, memory / "copies", 1, 1);
    const fs::path file = files_in(memory / "copies").front(), again = file.string() + "-b";
    fs::copy_file(file, again);
    const auto damage = [](const fs::path& path) {
      std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(-1, std::ios::end);
      stream.put('\x5a');
    };
    damage(first ? file : again);
    EXPECT_TRUE(found_in(memory / "copies"));
    damage(first ? again : file);
    EXPECT_FALSE(found_in(memory / "copies"));
  }
}

// Or else a start might be refused, or end without memory, on a host that was enough for the one before.
TEST(HostCopies, OfAStartThatGoesOnTakeNoMoreMemoryThanThoseOfTheFirst) {
  const Scratch memory;
  const run::Run run = sharded_plan(1, 1, 1, "off");
  const auto most_of_a_start = [&](std::int64_t from) {
    Bytes most = 0;
    copied_steps(run, memory / "copies", 1, 3, from,
                 [&] { most = std::max(most, train::bytes_of_copies(memory / "copies")); });
    return static_cast<double>(most);
  };
  const double first = most_of_a_start(0);
  EXPECT_EQ(static_cast<double>(train::bytes_of_copies(memory / "copies")), first) << "what it leaves";
  EXPECT_LT(most_of_a_start(3), 1.1 * first) << "texts differ in length";
  EXPECT_EQ(files_in(memory / "copies").size(), 2);
}

TEST(HostCopies, OfTheStepThatAStartGoesOnFromStayUntilThereAreTwoNewOnes) {
  const Scratch memory;
  const run::Run run = sharded_plan(1, 1, 2, "off");
  copied_steps(run, memory / "copies", 1, 3);
  EXPECT_EQ(files_in(memory / "copies").size(), 4) << "two of each rank";
  memory.write("copies/of-a-start-that-was-killed", "no copy");
  copied_steps(run, memory / "copies", 1, 1, 3);
  EXPECT_EQ(files_in(memory / "copies").size(), 4) << "of step 3, and the new ones of step 1";
  EXPECT_EQ(found_in(memory / "copies")->facts.step, 3);
  copied_steps(run, memory / "copies", 1, 2, 3);
  EXPECT_EQ(files_in(memory / "copies").size(), 4);
  EXPECT_EQ(found_in(memory / "copies")->facts.step, 2);
  train::clear_copies(memory / "copies");
  EXPECT_FALSE(fs::exists(memory / "copies"));
}

bool is_mapped(const std::string& directory) {
  const std::string path = fs::canonical(directory).string();
  return contents_of("/proc/self/maps").find(path) != std::string::npos;
}

// A file that is removed gives back its memory only when nobody maps it.
TEST(HostCopies, AreLetGoWhenTheyHaveBeenLoaded) {
  const Scratch memory;
  const run::Run run = sharded_plan(1, 1, 1, "off");
  const auto states = copied_steps(run, memory / "copies", 1, 2);
  const auto found = found_in(memory / "copies");
  ASSERT_TRUE(found);
  EXPECT_TRUE(is_mapped(memory / "copies"));
  expect_same(loaded_from(*found, run), states.back());
  found->state->let_go();
  EXPECT_FALSE(is_mapped(memory / "copies"));
}

TEST(HostCopies, AreKeptByRanksOfOtherHostsAlike) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{
           {1, 1}, {4, 4}, {8, 8, 8, 4}, {1, 2, 3}, {2, 5, 3, 4}, {8, 2}, {2, 8}, {1, 6, 1}}) {
    SCOPED_TRACE(::testing::PrintToString(sizes));
    std::vector<std::vector<int>> hosts;
    std::vector<std::size_t> host_of;
    for (const int size : sizes) {
      std::vector<int>& ranks = hosts.emplace_back();
      for (int i = 0; i < size; ++i) {
        ranks.push_back(static_cast<int>(host_of.size()));
        host_of.push_back(hosts.size() - 1);
      }
    }
    const auto keepers = train::keepers_of(hosts);
    std::vector<int> kept(host_of.size());
    for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
      ASSERT_TRUE(keepers[rank]);
      EXPECT_NE(host_of[static_cast<std::size_t>(*keepers[rank])], host_of[rank]);
      ++kept[static_cast<std::size_t>(*keepers[rank])];
    }
    const int most = std::ranges::max(sizes), others = static_cast<int>(host_of.size()) - most;
    EXPECT_LE(std::ranges::max(kept), (most + others - 1) / others) << "one, where no host has most of them";
  }
  EXPECT_FALSE(train::keepers_of({{0, 1}})[0]) << "there is no other host";
}

TEST(HostCopies, NameTheFolderThatHasNoRoom) {
  const Scratch memory;
  memory.write("file", "");
  EXPECT_NE(failure<RunError>([&] {
              copied_steps(sharded_plan(1, 1, 1, "off"), memory / "file/copies", 1, 1);
            }).find("train.buddy_dir names the folder"),
            std::string::npos);
}

bool is_whole(const fs::path& file) {
  return train::contents_of_slot(files::MappedFile(file.string()).bytes()).has_value();
}

// What a run before has left is there whichever call fails, or what is newer; a start that fails leaves
// nothing that is not whole.
TEST(HostCopies, LoseNothingWhicheverCallFails) {
  const run::Run run = sharded_plan(1, 1, 2, "off");
  const auto write = [&](const Scratch& memory) { copied_steps(run, memory / "copies", 1, 2, 1); };
  int calls = 0;
  {
    const Scratch memory;
    copied_steps(run, memory / "copies", 1, 1);
    const FaultyFiles counting;
    write(memory);
    calls = counting.calls();
  }
  ASSERT_GT(calls, 4) << "two slots of each rank, at least";
  for (const InjectedFault& fault : kInjectedFaults) {
    int failures = 0;
    for (int at = 0; at < calls; ++at) {
      SCOPED_TRACE(std::string(fault.text) + " at call " + std::to_string(at));
      const Scratch memory;
      copied_steps(run, memory / "copies", 1, 1);
      std::string failed;
      {
        const FaultyFiles faulty(at, fault.error, fault.fault);
        failed = failure<RunError>([&] { write(memory); });
      }
      EXPECT_TRUE(found_in(memory / "copies")) << failed;
      if (failed.empty()) continue;
      if (fault.fault == FaultyFiles::Fault::Once) {
        for (const fs::path& file : files_in(memory / "copies"))
          EXPECT_TRUE(is_whole(file)) << file << " takes memory for nothing";
      }
      ++failures;
      EXPECT_NE(failed.find(memory / "copies"), std::string::npos) << failed;
      EXPECT_NE(failed.find(fault.text), std::string::npos) << failed;
      write(memory);
      EXPECT_EQ(found_in(memory / "copies")->facts.step, 2);
    }
    EXPECT_GT(failures, fault.fault == FaultyFiles::Fault::Short ? -1 : 0);
  }
}

}  // namespace
}  // namespace penstock::testing
