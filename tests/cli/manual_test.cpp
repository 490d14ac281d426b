// SPDX-License-Identifier: Apache-2.0
// The manual page and the shell's completion have every command, flag and key, and work.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "cli/run_program.h"
#include "plan/plan_options.h"
#include "run/options.h"

namespace penstock::testing {
namespace {

std::string printed_by(const Arguments& arguments) {
  const Ending ending = program(arguments);
  EXPECT_EQ(ending.exit_code, 0) << ending.err;
  return ending.out;
}

// The page without its fonts and escapes.
std::string page_text() {
  std::string text = std::regex_replace(printed_by({"man"}), std::regex(R"(\\f[BIR])"), "");
  return std::regex_replace(text, std::regex(R"(\\-)"), "-");
}

// What --help lists: an independent reading of the parser.
std::vector<std::string> listed(const Arguments& command, const std::string& line) {
  Arguments arguments = command;
  arguments.push_back("--help");
  const std::string help = printed_by(arguments);
  const std::regex pattern(line);
  std::vector<std::string> found;
  for (std::sregex_iterator it(help.begin(), help.end(), pattern), end; it != end; ++it)
    found.push_back(it->str(1));
  return found;
}

std::vector<std::string> commands() {
  const std::string help = printed_by({"--help"});
  std::vector<std::string> names;
  for (const std::string& line : lines_of(help.substr(help.find("Subcommands:")))) {
    if (line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

// What bash proposes behind these words, the last of which is being typed.
std::set<std::string> proposed(const Arguments& words) {
  static const std::string script = printed_by({"completion", "bash"});
  std::string list;
  for (const std::string& word : words) list += " '" + word + "'";
  const Ending ending =
      run_program({"bash", "-c",
                   script + "COMP_WORDS=(" + list + ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
                       "\n_penstock\nprintf '%s\\n' \"${COMPREPLY[@]}\""});
  EXPECT_EQ(ending.err, "");
  const auto lines = lines_of(ending.out);
  std::set<std::string> proposals(lines.begin(), lines.end());
  proposals.erase("");
  return proposals;
}

void expect_keys_in(const std::string& page, const OptionTable& table, const std::string& command) {
  const auto proposals = proposed({"penstock", command, "--"});
  for (const Option& key : table) {
    const std::size_t section = page.find(".SS [" + std::string(key.section) + "]\n");
    ASSERT_NE(section, page.npos) << key.section;
    const std::string text = page.substr(section, page.find(".SS", section + 3) - section);
    EXPECT_NE(text.find(".TP\n" + std::string(key.key) + " = "), text.npos) << key.name();
    EXPECT_TRUE(proposals.contains("--" + key.name())) << command << " " << key.name();
  }
}

TEST(Manual, HasEveryKeyOfRunFilesAndPlanFiles) {
  const std::string page = page_text();
  const std::size_t plan_keys = page.find(".SH KEYS OF A PLAN FILE");
  ASSERT_NE(plan_keys, page.npos);
  run::Options run_options;
  for (const char* command : {"train", "simulate", "data"})
    expect_keys_in(page.substr(0, plan_keys), run::describe(run_options), command);
  plan::PlanOptions plan_options;
  OptionTable plan_table;
  plan::describe(plan_options, plan_table);
  expect_keys_in(page.substr(plan_keys), plan_table, "plan");
}

TEST(Manual, HasEveryFlagOfEveryCommand) {
  const std::string page = page_text();
  const auto names = commands();
  ASSERT_GE(names.size(), 10u);
  for (const std::string& command : names) {
    const std::size_t begin = page.find(".SS penstock " + command + "\n");
    ASSERT_NE(begin, page.npos) << command;
    const std::string text = page.substr(begin, page.find("\n.S", begin + 3) - begin);
    const auto proposals = proposed({"penstock", command, "-"});
    const auto flags = listed({command}, R"(\n  (?:-\w,)?(--[\w-]+))");
    EXPECT_FALSE(flags.empty()) << command;
    for (const std::string& flag : flags) {
      EXPECT_TRUE(std::regex_search(text, std::regex("(^|, |\n)" + flag + "[ ,\n]")))
          << command << " " << flag;
      EXPECT_TRUE(proposals.contains(flag)) << command << " " << flag;
    }
  }
}

TEST(Help, KeepsTwoBlanksBetweenAFlagAndItsMeaning) {
  for (const std::string& command : commands())
    EXPECT_TRUE(listed({command}, "\n( {2}-[^\n]{25}[^ \n] [^ \n][^\n]*)").empty()) << command;
}

TEST(Manual, FormatsWithoutAWarning) {
  if (run_program({"sh", "-c", "command -v groff"}).exit_code != 0)
    GTEST_SKIP() << "groff is missing; enable it with: apt-get install groff-base";
  const Ending ending = run_program({"sh", "-c", PENSTOCK_PROGRAM " man | groff -man -Tutf8 -ww -P-cbou"});
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_EQ(ending.err, "");
  EXPECT_NE(ending.out.find("\nSYNOPSIS\n"), std::string::npos);
  EXPECT_EQ(ending.out.find('\\'), std::string::npos) << "an escape that nobody read";
}

TEST(Completion, ProposesCommandsThenFlagsThenValues) {
  const auto names = commands();
  std::set<std::string> expected(names.begin(), names.end());
  expected.insert({"-h", "--help", "--version"});
  EXPECT_EQ(proposed({"penstock", ""}), expected);
  EXPECT_EQ(proposed({"penstock", "si"}), std::set<std::string>{"simulate"});
  EXPECT_EQ(proposed({"penstock", "train", "run.toml", "--re"}), std::set<std::string>{"--resume"});
  EXPECT_EQ(proposed({"penstock", "convert", "--to", ""}),
            (std::set<std::string>{"huggingface", "penstock"}));
  EXPECT_EQ(proposed({"penstock", "show", "--schedule", "slim"}), std::set<std::string>{"slimpipe"});
  EXPECT_EQ(proposed({"penstock", "completion", ""}), std::set<std::string>{"bash"});
}

TEST(Completion, ProposesKeysAndTheirWordsWithAnyTextBetween) {
  EXPECT_EQ(proposed({"penstock", "train", "run.toml", "--train.lr"}),
            (std::set<std::string>{"--train.lr", "--train.lr_schedule"}));
  const std::set<std::string> schedules{"cosine", "constant"};
  EXPECT_EQ(proposed({"penstock", "train", "--train.lr_schedule", ""}), schedules);
  EXPECT_EQ(proposed({"penstock", "train", "--train.lr_schedule", "="}), schedules);
  EXPECT_EQ(proposed({"penstock", "train", "--train.lr_schedule", "=", "con"}),
            std::set<std::string>{"constant"});
  EXPECT_EQ(proposed({"penstock", "train", "--train.shuffle", ""}), (std::set<std::string>{"true", "false"}));
  EXPECT_TRUE(proposed({"penstock", "train", "--schedule.name", ""}).contains("slimpipe"));
  EXPECT_EQ(proposed({"penstock", "supervise", "--", "mpirun", "-np", "2", "penstock", "train", "run.toml",
                      "--train.lr_"}),
            std::set<std::string>{"--train.lr_schedule"});
}

// The shell then names files.
TEST(Completion, ProposesNothingInPlaceOfAFile) {
  EXPECT_EQ(proposed({"penstock", "train", ""}), std::set<std::string>{});
  EXPECT_EQ(proposed({"penstock", "train", "--data.text", ""}), std::set<std::string>{});
}

}  // namespace
}  // namespace penstock::testing
