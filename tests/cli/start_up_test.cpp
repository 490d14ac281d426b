// SPDX-License-Identifier: Apache-2.0
// The program starts without LibTorch and MPI, and says what the whole program says.
#include <gtest/gtest.h>

#include "cli/run_program.h"

namespace penstock::testing {
namespace {

const std::string kWhole = std::string(PENSTOCK_PROGRAM) + "-compute";

std::string loaded_by(const std::string& program) {
  const Ending ending = run_program({"env", "LD_TRACE_LOADED_OBJECTS=1", program});
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  EXPECT_NE(ending.out.find("libc.so"), std::string::npos) << ending.out;
  return ending.out;
}

TEST(StartUp, LoadsNeitherLibTorchNorMpi) {
  for (const char* library : {"libtorch", "libc10", "libmpi", "libgomp"}) {
    EXPECT_EQ(loaded_by(PENSTOCK_PROGRAM).find(library), std::string::npos) << library;
    EXPECT_NE(loaded_by(kWhole).find(library), std::string::npos) << library;
  }
}

TEST(StartUp, SaysWhatTheWholeProgramSays) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  const std::string file = scratch / "run.toml";
  for (const Arguments& words : std::vector<Arguments>{
           {},
           {"--help"},
           {"--version"},
           {"man"},
           {"completion", "bash"},
           {"trian"},
           {"train"},
           {"train", "--help"},
           {"train", "nowhere.toml"},
           {"train", file, "--print-config"},
           {"train", file, "--schedule.slices", "-1"},
           {"train", file, "--schedule.slices", "7", "--resume"},
           {"train", file, "--ranks", "3", "--train.lrr", "1"},
           {"show", "--schedule", "slimpipe", "-p", "4", "-m", "2", "-n", "8"},
           {"show", file},
           {"check", "nowhere"},
           {"simulate", "--schedule", "1f1b", "-p", "4", "-m", "8", "--json"},
           {"simulate", file, "--hardware", "assumed", "--json"},
           {"data", file, "--hardware", "nowhere"},
           {"report", "nowhere"},
           {"convert", "nowhere", "-o", "there"},
           {"supervise", "--", "true"},
       }) {
    Arguments quick{PENSTOCK_PROGRAM}, whole{kWhole};
    quick.insert(quick.end(), words.begin(), words.end());
    whole.insert(whole.end(), words.begin(), words.end());
    const Ending first = run_program(quick), second = run_program(whole);
    EXPECT_EQ(first.exit_code, second.exit_code) << ::testing::PrintToString(words);
    EXPECT_EQ(first.out, second.out) << ::testing::PrintToString(words);
    EXPECT_EQ(first.err, second.err) << ::testing::PrintToString(words);
  }
}

TEST(StartUp, NamesTheWholeProgramWhereItIsMissing) {
  const Scratch scratch;
  const std::string alone = scratch / "penstock";
  std::filesystem::copy_file(PENSTOCK_PROGRAM, alone);
  EXPECT_EQ(run_program({alone, "show", "--schedule", "gpipe", "-p", "2", "-m", "2"}).exit_code, 0);
  scratch.write("run.toml", small_run_file(scratch));
  const std::string file = scratch / "run.toml";
  EXPECT_EQ(run_program({alone, "train", file, "--schedule.slices", "-1"}).exit_code, 2);
  EXPECT_EQ(run_program({alone, "train", "nowhere.toml"}).exit_code, 2);
  const Ending ending = run_program({alone, "train", file});
  EXPECT_EQ(ending.exit_code, 3);
  EXPECT_EQ(ending.complaints(), Arguments{"cannot start " + alone + "-compute: No such file or directory"});
}

TEST(StartUp, NamesARemovedWorkingDirectory) {
  const Scratch scratch;
  scratch.write("run.toml", small_run_file(scratch));
  std::filesystem::create_directory(scratch / "gone");
  const Ending ending = run_program({"sh", "-c", "cd \"$1\" && rmdir \"$1\" && exec \"$2\" train \"$3\"",
                                     "sh", scratch / "gone", PENSTOCK_PROGRAM, scratch / "run.toml"});
  EXPECT_EQ(ending.exit_code, 2) << ending.err;
  EXPECT_EQ(ending.complaints(),
            Arguments{"the current directory has been removed; change to one that exists"});
}

}  // namespace
}  // namespace penstock::testing
