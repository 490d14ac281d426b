// SPDX-License-Identifier: Apache-2.0
// Wrong input ends the program with exit code 2 and one line on stderr that names the part, the value and
// what would be right; nothing is written, and no rank hangs: alone, over threads, and under mpirun.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

// A run file with a fault in it, or a fault given on the command line.
struct Fault {
  std::string name;
  Arguments says;      // parts of the line
  Arguments settings;  // on the command line
  std::function<std::string(std::string)> file = [](std::string text) { return text; };
};

std::function<std::string(std::string)> replacing(const std::string& old_text, const std::string& new_text) {
  return [=](std::string text) { return text.replace(text.find(old_text), old_text.size(), new_text); };
}

std::function<std::string(std::string)> always(const std::string& text) {
  return [=](const std::string&) { return text; };
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"UnknownKey",
       {"run.toml:17: unknown key train.stepz; did you mean train.steps?"},
       {},
       replacing("steps = 5", "stepz = 5")},
      {"UnknownSection",
       {"run.toml:7: unknown section [date]; did you mean [data]?"},
       {},
       replacing("[data]", "[date]")},
      {"UnknownKeyOnTheCommandLine",
       {"command line: unknown key train.lrr; did you mean train.lr?"},
       {"--train.lrr", "1"}},
      {"WrongType",
       {"run.toml:17: train.steps = \"five\" is not an integer; it must be from 1 to"},
       {},
       replacing("steps = 5", "steps = \"five\"")},
      {"NotANumber", {"run.toml:17: "}, {}, replacing("steps = 5", "steps = five")},
      {"NotANumberOnTheCommandLine",
       {"command line: train.lr = \"fast\" is not a number; it must be positive"},
       {"--train.lr", "fast"}},
      {"IntegerOfMoreThan64Bits",
       {"command line: train.seed = 18446744073709551615 is too large; it must be from 0 to "
        "9223372036854775807"},
       {"--train.seed", "18446744073709551615"}},
      {"IntegerOfMoreThan64BitsInAList",
       {"command line: parallel.layers = -18446744073709551615 is too small; it must be from 1 to 65536"},
       {"--parallel.layers=[2, -18446744073709551615]"}},
      {"IntegerOfMoreThan64BitsInAFile",
       {"run.toml:17: ", "'18446744073709551615'", "; use at most 9223372036854775807"},
       {},
       replacing("steps = 5", "seed = 18446744073709551615")},
      {"LeastRateWithoutACosine",
       {"train.min_lr = 0.001 applies to the cosine: use train.lr_schedule = \"cosine\", or leave it out"},
       {"--train.min_lr", "1e-3", "--train.lr_schedule", "constant"}},
      {"Nan", {"run.toml:17: train.lr = nan is not a finite number"}, {}, replacing("steps = 5", "lr = nan")},
      {"Negative", {"command line: model.hidden = -16 must be from 1 to"}, {"--model.hidden=-16"}},
      {"NegativeRate", {"command line: train.lr = -0.1 must be positive"}, {"--train.lr=-0.1"}},
      {"Zero", {"command line: train.batch = 0 must be from 1 to"}, {"--train.batch", "0"}},
      {"MissingText", {"none.txt: cannot be opened: No such file or directory"}, {"--data.text", "none.txt"}},
      {"HeadsThatDoNotDivideHidden", {"model.heads = 3", "model.hidden = 16"}, {"--model.heads", "3"}},
      {"KvHeadsThatDoNotDivideHeads", {"model.kv_heads = 3", "model.heads = 4"}, {"--model.kv_heads", "3"}},
      {"MoreDevicesThanLayers",
       {"parallel.pp = 5 makes 5 stages", "model.layers = 4"},
       {"--parallel.pp", "5"}},
      {"MoreSlicesThanTokens", {"31", "30"}, {"--schedule.slices", "31"}},
      {"TextShorterThanOneSequence",
       {"corpus.txt\" has ", "fewer than one sample of 30001 tokens; use a longer text"},
       {"--data.seq_len", "30000"}},
      {"OtherRanksThanTheMeshNeeds",
       {"but parallel.pp = 3 needs 3; start 3 (--ranks 3, or mpirun -np 3), or set parallel.pp = "},
       {"--parallel.pp", "3"}},
      {"UnknownSchedule", {"\"slimpip\"", "slimpipe"}, {"--schedule.name", "slimpip"}},
      {"ScheduleWithTwoCopies",
       {"schedule.name = \"dualpipe\" keeps two copies of the parameters", "dualpipe-v"},
       {"--schedule.name", "dualpipe", "--schedule.slices", "1", "--parallel.pp", "2"}},
      {"UnwritableDirectory",
       {"output.dir = \"/proc/penstock\" cannot be made: "},
       {"--output.dir", "/proc/penstock"}},
      {"EmptyFile", {"run.toml: has no settings; write sections and keys"}, {}, always("")},
      {"BinaryFile",
       {"run.toml:1: "},
       {},
       always(std::string("\x7F"
                          "ELF\x02\x01\x01\0\0\0\xFF\xFE",
                          12))},
      {"HalfWrittenFile",
       {"run.toml:8: "},
       {},
       [](const std::string& text) { return text.substr(0, text.find("corpus.txt")); }},
  };
  return all;
}

// Every path below the directory, with what the files hold.
std::set<std::string> contents(const Scratch& scratch) {
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
    const std::string path = entry.path().string();
    found.insert(
        path + (entry.is_regular_file() ? ": " + scratch.read(path.substr(scratch.path().size() + 1)) : ""));
  }
  return found;
}

using Launch = std::function<Arguments(Arguments)>;

// The launch, and the legal run file for it, have the same number of ranks.
Launch alone(const Scratch&) {
  return [](Arguments arguments) {
    if (std::ranges::find(arguments, "--parallel.pp") == arguments.end())
      arguments.insert(arguments.end(), {"--parallel.pp", "1"});
    return with_threads(1, arguments);
  };
}
Launch over_threads(const Scratch&) {
  return [](const Arguments& arguments) { return with_threads(2, arguments); };
}
Launch under_mpirun(const Scratch&) {
  return [](const Arguments& arguments) { return with_mpirun(2, arguments); };
}

void expect_refusal_everywhere(const Scratch& scratch, Arguments command, const Arguments& says) {
  // All ranks have ended when the first does; mpirun would wait for them, however.
  if (command[0] == "mpirun")
    command.insert(command.begin() + 1, {"--mca", "odls_base_sigkill_timeout", "0"});
  const auto before = contents(scratch);
  const Ending ending = run_program(command, 60);
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  EXPECT_EQ(ending.out.find("model  "), std::string::npos) << "no run has begun";
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  if (command[0] != "mpirun") {
    EXPECT_EQ(lines_of(ending.err).size(), 1u) << ending.err;
  }
  for (const std::string& part : says) {
    EXPECT_NE(ending.complaints()[0].find(part), std::string::npos)
        << part << " / " << ending.complaints()[0];
  }
  EXPECT_EQ(contents(scratch), before);
}

struct Way {
  std::string name;
  Launch (*launch)(const Scratch&);
};

class WrongInput : public ::testing::TestWithParam<Way> {
 protected:
  // Runs the file with the given settings and expects one line with all the parts.
  void expect(const std::string& file, const Arguments& settings, const Arguments& says) {
    Arguments arguments{"train", scratch_ / file};
    arguments.insert(arguments.end(), settings.begin(), settings.end());
    expect_refusal_everywhere(scratch_, GetParam().launch(scratch_)(arguments), says);
  }

  Scratch scratch_;
  std::string legal_ = small_run_file(scratch_);
};

INSTANTIATE_TEST_SUITE_P(Ranks, WrongInput,
                         ::testing::Values(Way{"Alone", alone}, Way{"OverThreads", over_threads},
                                           Way{"UnderMpirun", under_mpirun}),
                         [](const auto& info) { return info.param.name; });

TEST_P(WrongInput, InTheRunFileIsToldInOneLine) {
  for (const Fault& fault : faults()) {
    SCOPED_TRACE(fault.name);
    scratch_.write("run.toml", fault.file(legal_));
    expect("run.toml", fault.settings, fault.says);
  }
}

TEST_P(WrongInput, IsAMissingRunFileOrADirectory) {
  expect("none.toml", {}, {"none.toml: cannot be opened: No such file or directory"});
  fs::create_directory(scratch_ / "folder.toml");
  expect("folder.toml", {}, {"folder.toml: is a directory, not a file"});
}

TEST_P(WrongInput, IsADirectoryThatHoldsAnotherRunOrIsAFile) {
  scratch_.write("run.toml", legal_);
  fs::create_directory(scratch_ / "run");
  scratch_.write("run/metrics.jsonl", "another run's\n");
  expect("run.toml", {},
         {"output.dir = ", "already holds a run (metrics.jsonl is there); name another directory"});
  expect("run.toml", {"--output.dir", scratch_ / "corpus.txt"}, {"is not a directory; name another one"});
  expect("run.toml", {"--output.dir", scratch_ / "corpus.txt/run"}, {"corpus.txt/run\" cannot be made: "});
}

TEST_P(WrongInput, OnTheCommandLineIsToldInOneLine) {
  scratch_.write("run.toml", legal_);
  const auto expect_words = [&](const Arguments& words, const Arguments& says) {
    expect_refusal_everywhere(scratch_, GetParam().launch(scratch_)(words), says);
  };
  expect_words({"trian", scratch_ / "run.toml"}, {"trian"});
  expect_words({"train", scratch_ / "run.toml", "--sample", "few"}, {"--sample"});
}

TEST(WrongInput, IsADirectoryWithoutThePermissionToWrite) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  fs::permissions(scratch.path(), fs::perms::owner_read | fs::perms::owner_exec);
  Arguments command = with_threads(2, {"train", scratch / "run.toml"});
  // Root may write everywhere, unless it gives that capability up.
  if (geteuid() == 0) command.insert(command.begin(), {"setpriv", "--bounding-set=-dac_override"});
  expect_refusal_everywhere(scratch, command, {"output.dir = ", "cannot be written: Permission denied"});
  fs::permissions(scratch.path(), fs::perms::owner_all);
}

TEST(WrongInput, OnOneRankAloneLeavesNothingBehind) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  Arguments command = with_mpirun(1, {"train", scratch / "run.toml"});
  for (const std::string& word :
       {std::string(":"), std::string("-np"), std::string("1"), std::string(PENSTOCK_PROGRAM),
        std::string("train"), scratch / "run.toml", std::string("--data.text"), std::string("none.txt")}) {
    command.push_back(word);
  }
  expect_refusal_everywhere(scratch, command, {"none.txt: cannot be opened"});
}

TEST(WrongInput, IsARunFileThatDiffersFromRankToRank) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  Arguments command = with_mpirun(1, {"train", scratch / "run.toml"});
  const Arguments other{":", "-np", "1", PENSTOCK_PROGRAM, "train", scratch / "run.toml", "--train.steps",
                        "7"};
  command.insert(command.end(), other.begin(), other.end());
  expect_refusal_everywhere(scratch, command, {"rank 1", "steps = 7", "rank 0", "steps = 5"});
}

// As hosts that have other files under one name.
TEST(WrongInput, IsDataOrWeightsThatDifferFromRankToRank) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  for (const char* seed : {"1", "2"}) {
    const Ending ending = program({"train", scratch / "run.toml", "--parallel.pp", "1", "--train.steps", "1",
                                   "--train.seed", seed, "--output.dir", scratch / seed});
    ASSERT_EQ(ending.exit_code, 0) << ending.err;
  }
  const auto expect_refused = [&](const std::string& key, const std::string& file, const std::string& says) {
    const Arguments words{"train", scratch / "run.toml", "--" + key, file};
    Arguments command = with_mpirun(1, words);
    command.insert(std::ranges::find(command, PENSTOCK_PROGRAM), {"-wdir", scratch / "1"});
    command.insert(command.end(), {":", "-np", "1", "-wdir", scratch / "2", PENSTOCK_PROGRAM});
    command.insert(command.end(), words.begin(), words.end());
    expect_refusal_everywhere(scratch, command, {"rank 1 was given " + key + says, "(rank 1, host "});
  };
  expect_refused("model.weights", "weights.safetensors", " of checksum ");
  std::string text = scratch.read("corpus.txt");
  scratch.write("1/corpus.txt", text);
  text[100] ^= 1;
  scratch.write("2/corpus.txt", text);
  expect_refused("data.text", "corpus.txt", " with tokens of checksum ");
}

TEST(WrongInput, IsThreadsOfOneProcessUnderMpirun) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  expect_refusal_everywhere(scratch, with_mpirun(2, {"train", scratch / "run.toml", "--ranks", "2"}),
                            {"--ranks 2", "mpirun", "leave"});
}

TEST(DryRun, UnderMpirunCountsItsRanksAndSpeaksOnce) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const Ending ending = run_program(with_mpirun(2, {"train", scratch / "run.toml", "--dry-run"}), 60);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("model  "), std::string::npos);
  EXPECT_EQ(ending.out.find("model  "), ending.out.rfind("model  ")) << ending.out;
  EXPECT_FALSE(fs::exists(scratch / "run"));
}

// Only the first rank need see the directory.
TEST(DryRun, UnderMpirunRefusesAResumeAsTheRunItselfDoes) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  ASSERT_EQ(
      program({"train", scratch / "run.toml", "--ranks", "2", "--train.checkpoint_every", "1"}).exit_code, 0);
  const Ending ending = run_program(
      with_mpirun(2, {"train", scratch / "run.toml", "--resume", "--dry-run", "--train.seed", "77"}), 60);
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  ASSERT_EQ(ending.complaints().size(), 1u) << ending.err;
  EXPECT_NE(ending.complaints()[0].find("train.seed"), std::string::npos) << ending.err;
}

}  // namespace
}  // namespace penstock::testing
