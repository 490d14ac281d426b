// SPDX-License-Identifier: Apache-2.0
#include "train/record/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"

namespace penstock::train {
namespace {

constexpr int kShortestBar = 10;  // columns, brackets included
constexpr int kLongestBar = 42;
constexpr std::string_view kGap = "  ";

std::string flops_text(const ProgressState& state) {
  const std::string rate = print_count(state.model_flops);
  if (state.machine_flops <= 0) return rate + "FLOP/s";
  return rate + "FLOP/s (" + number(100 * state.model_flops / state.machine_flops, 0) + "% of " +
         print_count(state.machine_flops) + "FLOP/s)";
}

// Most important first.
std::vector<std::string> parts_of(const ProgressState& state) {
  std::vector<std::string> parts;
  parts.push_back("step " + std::to_string(state.step) + "/" + std::to_string(state.steps));
  parts.push_back("loss " + number(state.loss, 4));
  if (state.remaining >= 0) parts.push_back(print_seconds(state.remaining) + " left");
  if (state.evaluation_loss) parts.push_back("eval " + number(*state.evaluation_loss, 4));
  if (state.tokens_per_second > 0) parts.push_back(print_count(state.tokens_per_second) + " tokens/s");
  if (state.model_flops > 0) parts.push_back(flops_text(state));
  return parts;
}

std::string bar(double done, int width) {
  const int room = width - 2;
  const int filled = std::clamp(static_cast<int>(std::floor(done * room)), 0, room);
  std::string cells(static_cast<std::size_t>(filled), '=');
  if (filled > 0 && filled < room) cells.back() = '>';
  cells.resize(static_cast<std::size_t>(room), ' ');
  return "[" + cells + "]";
}

}  // namespace

std::string plain_progress_line(const ProgressState& state) { return join(parts_of(state), kGap); }

std::string progress_line(const ProgressState& state, int width) {
  std::string line;
  for (const std::string& part : parts_of(state)) {
    const std::string longer = line.empty() ? part : line + std::string(kGap) + part;
    if (static_cast<int>(longer.size()) > width) break;
    line = longer;
  }
  return line.empty() ? line
                      : with_bar(as_double(state.step) / as_double(std::max<std::int64_t>(1, state.steps)),
                                 line, width);
}

std::string with_bar(double done, const std::string& line, int width) {
  const int room = std::min(kLongestBar, width - static_cast<int>(line.size() + kGap.size()));
  return room >= kShortestBar ? bar(done, room) + std::string(kGap) + line : line;
}

Progress::Progress(Output output) : output_(std::move(output)) {}

// Uses the pace since the first update: earlier time, such as part of the first step, is start-up.
Seconds Progress::remaining(const ProgressState& state) const {
  const auto done = static_cast<double>(state.step - first_step_);
  if (done <= 0) return -1;
  return (output_.now() - first_time_) / done * static_cast<double>(state.steps - state.step);
}

void Progress::update(ProgressState state) {
  if (first_step_ < 0) {
    first_step_ = state.step;
    first_time_ = output_.now();
  }
  state.remaining = remaining(state);
  state_ = std::move(state);
  const Seconds interval = output_.terminal ? kRedraw : output_.plain_interval;
  const bool due = !drawn_any_ || state_.step >= state_.steps || output_.now() - drawn_ >= interval;
  if (due) draw();
}

void Progress::draw() {
  drawn_ = output_.now();
  drawn_any_ = true;
  if (output_.terminal) {
    // One column stays free: a full line would wrap.
    output_.stream << "\r" + progress_line(state_, output_.width() - 1) + "\x1b[K" << std::flush;
    line_open_ = true;
  } else {
    output_.stream << plain_progress_line(state_) + "\n" << std::flush;
  }
}

void Progress::say(const std::string& line) {
  output_.stream << (line_open_ ? std::string("\r\x1b[K") : std::string()) + line + "\n" << std::flush;
  line_open_ = false;
  if (output_.terminal && drawn_any_) draw();
}

void Progress::finish() {
  if (line_open_) output_.stream << std::endl;
  line_open_ = false;
  drawn_any_ = false;
}

int terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace penstock::train
