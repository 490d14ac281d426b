// SPDX-License-Identifier: Apache-2.0
// ./dev refuses a word that it does not know before it installs or builds anything.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "scratch.h"

namespace {

// What ./dev prints, with no program at hand by which it could install or build.
std::string said_by_dev(const std::string& words) {
  const penstock::Scratch tools;
  const std::string command = "cd " PENSTOCK_SOURCE_DIR
                              " && for tool in bash cat dirname grep id sed sort tr; do ln -s \"$(command -v "
                              "$tool)\" " +
                              tools.path() + "; done; PATH=" + tools.path() + " ./dev " + words + " 2>&1";
  std::string text;
  std::FILE* output = popen(command.c_str(), "r");
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
  EXPECT_NE(pclose(output), 0) << words;
  return text;
}

TEST(Dev, RefusesAWordThatItDoesNotKnow) {
  EXPECT_EQ(said_by_dev("test base shcedule").find("./dev test: no tests are called \"shcedule\";"), 0u);
  for (const char* words : {"test --sanitise", "test gpu"})
    EXPECT_EQ(said_by_dev(words).find("./dev test: no tests are called"), 0u) << words;
  for (const char* words : {"build gpu", "build --gpu now", "test --sanitize comm", "demo 2", "fuzz 10 20",
                            "soak ten", "soak 10 20", "soak --sed 3"})
    EXPECT_NE(said_by_dev(words).find("is not a word of it; ./dev alone lists"), std::string::npos) << words;
  for (const char* words : {"fuzz ten", "fuzz --seconds 10", "fuzz 0", "fuzz --grow 1h", "fuzz --inputs"})
    EXPECT_NE(said_by_dev(words).find("expected a whole number above 0"), std::string::npos) << words;
  EXPECT_EQ(said_by_dev("soak --seed ten").find("./dev soak: \"ten\" is not a number for --seed"), 0u);
  for (const char* words : {"bench kernel", "bench kernels replica"})
    EXPECT_EQ(said_by_dev(words).find("no benchmark is called"), 0u) << words;
}

// These go on until something is to be installed.
TEST(Dev, KnowsTheLabelsOfTests) {
  for (const char* label : {"base", "cli", "docs", "fuzz", "python", "slurm"})
    EXPECT_EQ(said_by_dev(std::string("test ") + label).find("no tests"), std::string::npos) << label;
}

TEST(Dev, KnowsTheWordsOfBenchAndSoak) {
  for (const char* words : {"bench kernels shares", "bench peers --continue", "bench soak --seed 3",
                            "soak 10 --jobs 2 --only 4"}) {
    const std::string said = said_by_dev(words);
    for (const char* refusal : {"no benchmark", "is not a word", "is not a number", "take options"})
      EXPECT_EQ(said.find(refusal), std::string::npos) << said;
  }
}

}  // namespace
