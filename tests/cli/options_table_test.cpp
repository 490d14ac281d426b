// SPDX-License-Identifier: Apache-2.0
#include "cli/options_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "cli/run_file.h"
#include "train/options.h"

namespace penstock::cli {
namespace {

TEST(OptionsTable, HasEveryKeyOnceWithASentence) {
  train::RunOptions options;
  std::set<std::string> names;
  for (const Option& option : train::describe(options)) {
    EXPECT_TRUE(names.insert(option.name()).second) << option.name();
    EXPECT_TRUE(option.sentence.ends_with(".")) << option.name();
  }
  EXPECT_EQ(
      sections(train::describe(options)),
      (std::vector<std::string_view>{"model", "data", "parallel", "schedule", "memory", "train", "output"}));
}

TEST(OptionsTable, AllowsItsOwnDefaults) {
  train::RunOptions options;
  const OptionTable table = train::describe(options);
  EXPECT_NO_THROW(read_toml(print_toml(table), "defaults", table));
}

TEST(OptionsTable, PrintsHelpWithDefaultsAndLimits) {
  const std::string help = run_options_help();
  EXPECT_NE(help.find("[train]\n  steps = 100 "), std::string::npos) << help;
  EXPECT_NE(help.find("Which parameters decay. (\"matrices\" or \"all\")"), std::string::npos);
}

TEST(OptionsTable, IsWhatTheDocumentationShows) {
  std::ifstream file(std::string(PENSTOCK_SOURCE_DIR) + "/docs/options.md");
  const std::string documented(std::istreambuf_iterator<char>(file), {});
  const std::string fresh = std::string(PENSTOCK_BINARY_DIR) + "/options.md";
  std::ofstream(fresh) << run_options_markdown();
  EXPECT_EQ(documented, run_options_markdown())
      << "docs/options.md is out of date: cp " << fresh << " docs/options.md";
}

}  // namespace
}  // namespace penstock::cli
