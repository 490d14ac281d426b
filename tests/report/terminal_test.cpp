// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "report/example_reports.h"

namespace penstock::report {
namespace {

std::string drawn(int devices, TerminalStyle style,
                  std::vector<std::vector<schedule::ExchangeSpan>> exchanges = {}) {
  const auto program = example_program("1f1b", devices, 4, 1);
  const auto seconds = [](int, const schedule::Op& op) {
    return op.kind == schedule::OpKind::Forward ? 1.0 : op.kind == schedule::OpKind::Backward ? 2.0 : 0.0;
  };
  schedule::Timeline timeline = PaperClock(program, seconds).run();
  timeline.exchanges = std::move(exchanges);
  return terminal_timeline(program, timeline, style);
}

// Columns that a line takes on the screen: escape sequences take none.
std::size_t columns(std::string_view line) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\033')
      i = line.find('m', i);
    else
      ++count;
  }
  return count;
}

TEST(Terminal, DrawsWhatTheTextbookDraws) {
  // 1F1B, p = 2, m = 4, B = 2F: 15 units of time, two columns each.
  EXPECT_EQ(drawn(2, {.width = 41}),
            "0 |FFFF    BBBBFFBBBBFFBBBB  BBBB|   80 %\n"
            "1 |  FFBBBBFFBBBBFFBBBBFFBBBB    |   80 %\n"
            "   0                       15.0 s\n"
            "   F forward, B backward\n");
}

TEST(Terminal, ServingIsBusyAndWaitingInsideAnActionIsNot) {
  const schedule::ExchangeSpan served{.start = 2, .end = 3}, waited{.start = 1, .end = 2, .waiting = true};
  const std::string text = drawn(2, {.width = 41}, {{served}, {waited}});
  EXPECT_NE(text.find("|   87 %\n1 |"), std::string::npos) << text;  // 13 and 11 of 15, not 12
  EXPECT_NE(text.find("|   73 %\n   0"), std::string::npos) << text;
}

TEST(Terminal, NeverTakesMoreColumnsThanItIsGiven) {
  for (int width = 30; width <= 200; width += 7) {
    for (const bool colour : {false, true}) {
      const std::string text = drawn(12, {.width = width, .colour = colour});
      const auto lines = split(text, '\n');
      for (std::size_t d = 0; d < 12; ++d) EXPECT_EQ(columns(lines[d]), static_cast<std::size_t>(width));
      for (const auto line : lines) EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(Terminal, UsesNoEscapesWithoutColour) {
  EXPECT_EQ(drawn(4, {.width = 80}).find('\033'), std::string::npos);
  EXPECT_NE(drawn(4, {.width = 80, .colour = true}).find('\033'), std::string::npos);
}

TEST(Terminal, SaysHowManyDevicesItLeavesOut) {
  const std::string text = drawn(8, {.width = 80, .colour = false, .devices = 3});
  EXPECT_NE(text.find("(5 more devices)\n"), std::string::npos);
  EXPECT_EQ(text.find("device 3"), std::string::npos);
}

TEST(Terminal, DrawsATimelineWithoutWork) {
  schedule::Program program{"empty", 1, {1}, {{}, {}}};
  const std::string text = terminal_timeline(program, {{{}, {}}}, {.width = 40});
  EXPECT_NE(text.find("0 %"), std::string::npos);
}

}  // namespace
}  // namespace penstock::report
