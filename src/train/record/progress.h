// SPDX-License-Identifier: Apache-2.0
// Progress of a run: a bar redrawn in place in a terminal, occasional plain lines elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "base/units.h"

namespace penstock::train {

struct ProgressState {
  std::int64_t step = 0;   // done
  std::int64_t steps = 1;  // total
  double loss = 0;
  std::optional<double> evaluation_loss;  // the latest
  double tokens_per_second = 0;
  double model_flops = 0;    // per second, of the whole run
  double machine_flops = 0;  // measured rate of matrix products of all ranks together; 0: unknown
  Seconds remaining = 0;     // negative: unknown
};

// "step 120/400  loss 2.1040  3 min 10 s left  eval 2.2000  12.3 K tokens/s  45.1 GFLOP/s (38% of 120
// GFLOP/s)". Parts that do not fit `width` columns are dropped from the right; a bar fills the rest. Never
// longer than width.
std::string progress_line(const ProgressState& state, int width);

// All parts, without a bar.
std::string plain_progress_line(const ProgressState& state);

// Each line is one write, since a launcher mixes the output of its ranks.
class Progress {
 public:
  struct Output {
    std::ostream& stream;
    bool terminal = false;
    std::function<int()> width;    // columns, called at every redraw; terminals only
    std::function<Seconds()> now;  // any monotonic clock
    Seconds plain_interval = 10;   // between plain lines
  };
  explicit Progress(Output output);
  ~Progress() { finish(); }  // an error that follows begins on its own line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call after each step. Draws at most ten times a second, but always the first and the last step.
  void update(ProgressState state);

  // Prints a separate line above the bar.
  void say(const std::string& line);

  // Keeps the last bar and moves to the next line.
  void finish();

 private:
  void draw();
  Seconds remaining(const ProgressState& state) const;

  Output output_;
  std::int64_t first_step_ = -1;  // start of the pace measurement
  Seconds first_time_ = 0;
  Seconds drawn_ = 0;
  bool drawn_any_ = false;
  bool line_open_ = false;
  ProgressState state_;
};

// For other bars in a terminal: the line with a bar before it where `width` has room for one, and the time
// between drawings.
std::string with_bar(double done, const std::string& line, int width);
inline constexpr Seconds kRedraw = 0.1;

// Standard error's width in columns, 80 when unknown.
int terminal_width();

}  // namespace penstock::train
