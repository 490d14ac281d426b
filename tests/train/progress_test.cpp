// SPDX-License-Identifier: Apache-2.0
#include "train/record/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace penstock::train {
namespace {

const ProgressState kHalf{.step = 50,
                          .steps = 100,
                          .loss = 2.12345,
                          .evaluation_loss = 2.2,
                          .tokens_per_second = 12345,
                          .model_flops = 45.1e9,
                          .machine_flops = 120e9,
                          .remaining = 65};

// Progress with a clock and a width that a test moves by hand.
struct Screen {
  std::ostringstream stream;
  Seconds now = 0;
  int width = 80;
  Progress progress;
  explicit Screen(bool terminal)
      : progress({.stream = stream,
                  .terminal = terminal,
                  .width = [this] { return width; },
                  .now = [this] { return now; }}) {}

  void run(std::int64_t steps, Seconds step_time) {
    for (std::int64_t step = 1; step <= steps; ++step) {
      now += step_time;
      progress.update({.step = step, .steps = steps, .loss = 1.0});
    }
  }
  std::int64_t count(char c) const { return std::ranges::count(stream.str(), c); }
};

TEST(ProgressLine, SaysEverythingWhereThereIsRoom) {
  EXPECT_EQ(plain_progress_line(kHalf),
            "step 50/100  loss 2.1235  1 min 05 s left  eval 2.2000  12.3 K tokens/s  45.1 GFLOP/s (38% of "
            "120 GFLOP/s)");
  const std::string wide = progress_line(kHalf, 200);
  EXPECT_TRUE(wide.ends_with(plain_progress_line(kHalf))) << wide;
  EXPECT_TRUE(wide.starts_with("[===================>                    ]  step 50/100")) << wide;
}

TEST(ProgressLine, FitsEveryWidth) {
  for (int width = -1; width < 200; ++width) {
    const std::string line = progress_line(kHalf, width);
    EXPECT_LE(static_cast<int>(line.size()), std::max(0, width)) << line;
    if (width >= 11) {
      EXPECT_NE(line.find("step 50/100"), std::string::npos) << width;
    }
  }
  EXPECT_EQ(progress_line(kHalf, 30), "step 50/100  loss 2.1235");
}

TEST(ProgressLine, FillsTheBarFromEmptyToFull) {
  ProgressState state = kHalf;
  state.step = 0;
  EXPECT_NE(progress_line(state, 200).find("[" + std::string(40, ' ') + "]"), std::string::npos);
  state.step = 100;
  EXPECT_NE(progress_line(state, 200).find("[" + std::string(40, '=') + "]"), std::string::npos);
}

TEST(Progress, PrintsPlainLinesNowAndThenInAPipe) {
  Screen screen(false);
  screen.run(1000, 0.1);  // 100 seconds: one line at first, then one each ten seconds, and the last
  EXPECT_GE(screen.count('\n'), 10);
  EXPECT_LE(screen.count('\n'), 12);
  EXPECT_EQ(screen.count('\r'), 0);
  EXPECT_EQ(screen.count('\x1b'), 0);
  EXPECT_NE(screen.stream.str().find("step 1000/1000"), std::string::npos);
}

// What a stream without a buffer, as stderr is, hands to the system at a time.
struct Pieces : std::stringbuf {
  std::vector<std::string> pieces;
  int sync() override {
    pieces.push_back(str());
    str("");
    return 0;
  }
};

TEST(Progress, WritesEveryLineInOnePiece) {
  Pieces pieces;
  std::ostream stream(&pieces);
  stream << std::unitbuf;
  Progress progress(
      {.stream = stream, .terminal = false, .width = [] { return 80; }, .now = [] { return 0.0; }});
  progress.say("one");
  progress.update({.step = 1, .steps = 1, .loss = 1.0});
  std::erase(pieces.pieces, "");
  ASSERT_EQ(pieces.pieces.size(), 2u);
  for (const std::string& piece : pieces.pieces) EXPECT_TRUE(piece.ends_with("\n")) << piece;
}

TEST(Progress, RedrawsOneLineInATerminalAtMostTenTimesASecond) {
  Screen screen(true);
  screen.run(1000, 0.01);
  EXPECT_EQ(screen.count('\n'), 0);
  EXPECT_GE(screen.count('\r'), 90);
  EXPECT_LE(screen.count('\r'), 103);
  screen.progress.finish();
  EXPECT_EQ(screen.count('\n'), 1);
}

TEST(Progress, FollowsTheWidthOfTheTerminal) {
  Screen screen(true);
  screen.width = 20;
  screen.run(3, 1.0);
  const std::string text = screen.stream.str();
  for (std::size_t begin = 0; (begin = text.find('\r', begin)) != std::string::npos; ++begin) {
    EXPECT_LT(text.find('\x1b', begin) - begin - 1, 20u);
  }
}

TEST(Progress, TellsTheTimeLeftFromThePaceAfterTheFirstStep) {
  Screen screen(false);
  screen.now = 100;  // a slow start
  screen.progress.update({.step = 1, .steps = 11, .loss = 1});
  EXPECT_EQ(screen.stream.str().find("left"), std::string::npos) << "one step tells no pace";
  screen.now = 120;
  screen.progress.update({.step = 6, .steps = 11, .loss = 1});
  EXPECT_NE(screen.stream.str().find("20.0 s left"), std::string::npos) << screen.stream.str();
}

TEST(Progress, SaysALineAboveTheBar) {
  Screen screen(true);
  screen.run(2, 1.0);
  screen.progress.say("saved");
  EXPECT_NE(screen.stream.str().find("\r\x1b[Ksaved\n\r"), std::string::npos);
  screen.progress.finish();
  screen.progress.say("done");
  EXPECT_TRUE(screen.stream.str().ends_with("done\n")) << "no bar after the end";
}

TEST(Progress, EndsItsLineWhenAFailureUnwindsIt) {
  std::ostringstream stream;
  try {
    Progress progress(
        {.stream = stream, .terminal = true, .width = [] { return 80; }, .now = [] { return 0.0; }});
    progress.update({.step = 1, .steps = 2, .loss = 1});
    throw RunError("no room");
  } catch (const RunError& failure) {
    stream << failure.what();
  }
  EXPECT_TRUE(stream.str().ends_with("\nno room")) << stream.str();
}

}  // namespace
}  // namespace penstock::train
