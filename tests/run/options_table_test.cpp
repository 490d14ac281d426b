// SPDX-License-Identifier: Apache-2.0
#include "base/option_text.h"

#include <gtest/gtest.h>

#include <set>

#include "documented.h"
#include "files/option_file.h"
#include "run/options.h"

namespace penstock::run {
namespace {

TEST(OptionsTable, HasEveryKeyOnceWithASentence) {
  Options options;
  std::set<std::string> names;
  for (const Option& option : describe(options)) {
    EXPECT_TRUE(names.insert(option.name()).second) << option.name();
    EXPECT_TRUE(option.sentence.ends_with(".")) << option.name();
  }
  EXPECT_EQ(sections(describe(options)),
            (std::vector<std::string_view>{"model", "data", "parallel", "numerics", "moe", "schedule",
                                           "memory", "train", "output"}));
}

TEST(OptionsTable, AllowsItsOwnDefaults) {
  Options options;
  const OptionTable table = describe(options);
  EXPECT_NO_THROW(files::read_toml(print_toml(table), "defaults", table));
}

TEST(OptionsTable, LeavesOutWhatFollowsFromOthersUntilItIsGiven) {
  Options options;
  const OptionTable table = describe(options);
  for (const Option& option : table) {
    EXPECT_TRUE(option.shown_default.empty() || !is_given(option)) << option.name();
  }
  options.schedule.transfer = 0.5;
  EXPECT_TRUE(is_given(find_option(table, "schedule", "transfer", "test")));
  options.model.begin_token = 0;
  EXPECT_TRUE(is_given(find_option(table, "model", "begin_token", "test")));
  EXPECT_FALSE(is_given(find_option(table, "model", "padding_token", "test")));
}

TEST(OptionsTable, PrintsHelpWithDefaultsAndLimits) {
  const std::string help = options_help();
  EXPECT_NE(help.find("[train]\n  steps = 100 "), std::string::npos) << help;
  EXPECT_NE(
      help.find("counting embedding and output layer\n" + std::string(37, ' ') + "Layers of each stage"),
      std::string::npos)
      << "the meaning of a long default begins in the column of the others";
  EXPECT_NE(help.find("Parameters that weight decay applies to. (\"matrices\" or \"all\")"),
            std::string::npos);
}

TEST(OptionsTable, IsWhatTheDocumentationShows) { expect_documented("options.md", options_markdown()); }

}  // namespace
}  // namespace penstock::run
