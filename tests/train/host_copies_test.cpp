// SPDX-License-Identifier: Apache-2.0
// Copies of a run's state in hosts' memory: the newest whole one is found and loaded on any mesh, to the bit.
// (Copies on other hosts: tests/hosts.)
#include "train/checkpoint/host_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "failure.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "nn/tensor_checks.h"
#include "scratch.h"
#include "train/checkpoint/run_number.h"
#include "train/checkpoint/state_copy.h"
#include "train/checkpoint/state_shares.h"
#include "train/saved_run.h"
#include "write_path.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

using State = std::map<std::string, at::Tensor>;

const std::string kNumber = "00000000000000cd";  // of the run

// The state after each of so many steps, which are copied whenever `every` divides them; as of a start that
// goes on from step `from`. `look` is called before the first and after each; may be empty.
std::vector<State> copied_steps(const run::Run& run, const std::string& directory, std::int64_t every,
                                std::int64_t steps, std::int64_t from = 0,
                                const std::function<void()>& look = {}) {
  std::vector<State> states(static_cast<std::size_t>(steps));
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    const auto files = train::checkpoint_files(run.shape());
    train::HostCopies copies({directory, every, kNumber}, files,
                             train::shares_of_state(files, run.shape(), trainer),
                             facts_of(run, from, trainer), comm::World(world));
    if (look) look();
    for (std::int64_t step = 1; step <= steps; ++step) {
      step_on_drawn_tokens(run, trainer, world.rank(), step);
      copies.after_step(step, [&] { return facts_of(run, step, trainer); });
      world.barrier();
      const std::lock_guard lock(mutex);
      if (look) look();
      collect_state(trainer, states[static_cast<std::size_t>(step) - 1]);
    }
  });
  return states;
}

std::optional<train::FoundCopies> found_in(const std::string& directory, std::int64_t after = 0,
                                           const std::string& number = kNumber) {
  static const auto alone = comm::make_single();
  return train::find_copies(directory, number, after, comm::World(*alone));
}

State loaded_from(const train::FoundCopies& found, const run::Run& run) {
  State state;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    train::load_state(*found.state, found.facts, trainer);
    const std::lock_guard lock(mutex);
    collect_state(trainer, state);
  });
  return state;
}

void expect_same(const State& got, const State& wanted) {
  ASSERT_FALSE(wanted.empty());
  for (const auto& [name, tensor] : got) {
    if (wanted.contains(name)) expect_same_bits(tensor, wanted.at(name), name);
  }
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

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

// Rank 2, on another host, has no work in the run that goes on.
void bring_from_the_third_rank(const Scratch& memory, Seconds timeout = 120) {
  comm::run_ranks(3, [&](comm::Communicator& world) {
    world.set_timeout(timeout);
    const bool leaves = world.rank() == 2;
    train::bring_copies(memory / (leaves ? "b" : "a"), kNumber, leaves ? "b" : "a", 2, comm::World(world));
    world.barrier();
  });
}

TEST(HostCopies, AreBroughtFromAHostThatHasNoWork) {
  const Scratch memory;
  const run::Run run = sharded_plan(2, 1, 1, "off");
  const auto states = copied_steps(run, memory / "b", 1, 2);
  memory.write("b/torn", "no copy");
  bring_from_the_third_rank(memory);
  EXPECT_EQ(files_in(memory / "a").size(), files_in(memory / "b").size() - 1);
  const auto found = found_in(memory / "a");
  ASSERT_TRUE(found);
  expect_same(loaded_from(*found, run), states.back());
}

class SlowMemory final : public FaultyFiles {
 public:
  ssize_t write(int descriptor, std::span<const std::byte> bytes) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return FaultyFiles::write(descriptor, bytes);
  }
};

// Rank 1 neither sends nor receives any.
TEST(HostCopies, AreBroughtHoweverLongThatTakes) {
  const Scratch memory;
  copied_steps(sharded_plan(2, 1, 1, "off"), memory / "b", 1, 2);
  const SlowMemory slow;
  bring_from_the_third_rank(memory, 1);
  EXPECT_EQ(files_in(memory / "a").size(), 4) << "each of which takes a third of the time for a wait";
}

TEST(HostCopies, ThatWouldBeBroughtAreFoundAndLeftWhereTheyAre) {
  const Scratch memory;
  const auto found = [&](const std::string& number = kNumber) {
    std::atomic<int> ranks = 0;
    comm::run_ranks(3, [&](comm::Communicator& world) {
      const bool leaves = world.rank() == 2;
      ranks += train::has_copies_to_bring(memory / (leaves ? "b" : "a"), number, leaves ? "b" : "a", 2,
                                          comm::World(world));
    });
    return ranks.load();
  };
  EXPECT_EQ(found(), 0);
  copied_steps(sharded_plan(2, 1, 1, "off"), memory / "b", 1, 1);
  const auto before = files_below(memory.path());
  EXPECT_EQ(found(), 3) << "all ranks know";
  EXPECT_EQ(found("00000000000000ce"), 0) << "they are another run's";
  EXPECT_EQ(files_below(memory.path()), before);
  fs::rename(memory / "b", memory / "a");
  EXPECT_EQ(found(), 0) << "they are where the run will be";
}

TEST(HostCopies, AreBroughtWholeOrNotAtAllWhicheverCallFails) {
  const Scratch source;
  copied_steps(sharded_plan(1, 1, 1, "off"), source / "b", 1, 2);
  const auto memory_with_copies = [&](const Scratch& memory) {
    fs::copy(source / "b", memory / "b", fs::copy_options::recursive);
  };
  int calls = 0;
  {
    const Scratch memory;
    memory_with_copies(memory);
    const FaultyFiles counting;
    bring_from_the_third_rank(memory);
    calls = counting.calls();
  }
  ASSERT_GT(calls, 0);
  for (const InjectedFault& fault : kInjectedFaults) {
    int failures = 0;
    for (int at = 0; at < calls; ++at) {
      SCOPED_TRACE(std::string(fault.text) + " at call " + std::to_string(at));
      const Scratch memory;
      memory_with_copies(memory);
      std::string failed;
      {
        const FaultyFiles faulty(at, fault.error, fault.fault);
        failed = failure<RunError>([&] { bring_from_the_third_rank(memory); });
      }
      if (!failed.empty()) {
        ++failures;
        EXPECT_NE(failed.find(memory / "a"), std::string::npos) << failed;
        bring_from_the_third_rank(memory);
      }
      EXPECT_TRUE(found_in(memory / "a"));
    }
    EXPECT_GT(failures, 0) << fault.text;
  }
}

train::StateCopy some_copy() {
  train::StateCopy copy{.run = kNumber,
                        .start = "00000000000000ab",
                        .step = 7,
                        .ranks = 4,
                        .rank = 2,
                        .checkpoint = "{}",
                        .tensors = {{"a", files::ElementType::F32, {6, 10}, {{3, 2, 10, 6}}},
                                    {"b", files::ElementType::F64, {9}, {{0, 4, 0, 1}, {5, 1, 2, 2}}}},
                        .sum = 99};
  return copy;
}

TEST(RunNumber, StaysUntilItIsForgotten) {
  const Scratch scratch;
  const auto alone = comm::make_single();
  const comm::World world(*alone);
  EXPECT_EQ(train::run_number(scratch.path(), world), "");
  const std::string number = train::ensure_run_number(scratch.path(), world);
  EXPECT_EQ(number.size(), 16u);
  EXPECT_EQ(train::ensure_run_number(scratch.path(), world), number);
  EXPECT_EQ(train::run_number(scratch.path(), world), number);
  train::forget_run_number(scratch.path());
  EXPECT_NE(train::ensure_run_number(scratch.path(), world), number);
  scratch.write(files::kNumber, "noise");
  EXPECT_EQ(train::run_number(scratch.path(), world), "");
}

TEST(StateCopy, ReadsWhatItWrites) {
  const train::StateCopy copy = some_copy();
  EXPECT_EQ(train::parse_state_copy(to_json(copy), "x"), copy);
  EXPECT_EQ(copy.bytes(), 12 * 4 + 6 * 8);
  EXPECT_EQ(copy.tensors[0].whole_bytes(), 240);
}

TEST(StateCopy, RefusesRangesThatAreNotOfTheTensor) {
  const std::vector<std::vector<train::RangeRun>> bad{{{0, 11, 0, 1}},               // too long
                                                      {{8, 3, 0, 1}},                // beyond the end
                                                      {{0, 2, 1, 2}},                // over themselves
                                                      {{4, 2, 0, 1}, {5, 1, 0, 1}},  // over one another
                                                      {{0, 1, 5, 3}},  // the last beyond the end
                                                      {{0, 1, 1L << 47, 1L << 40}},  // beyond any number
                                                      {{-1, 1, 0, 1}},
                                                      {{0, 0, 0, 1}},
                                                      {{0, 1, 0, 0}}};
  for (const auto& runs : bad) {
    train::StateCopy copy = some_copy();
    copy.tensors = {{"a", files::ElementType::F32, {10}, runs}};
    EXPECT_NE(failure<InputError>([&] { train::parse_state_copy(to_json(copy), "x"); }).find("x: "),
              std::string::npos);
  }
  EXPECT_NE(failure<InputError>([] { train::parse_state_copy("[", "x"); }), "");
  EXPECT_NE(failure<InputError>([] { train::parse_state_copy("{}", "x"); }).find("\"run\" is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
