// SPDX-License-Identifier: Apache-2.0
// The line that tells how a run is going: a bar that redraws itself in a terminal, a plain line now and then
// elsewhere.
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
  std::int64_t steps = 1;  // in all
  double loss = 0;
  std::optional<double> evaluation_loss;  // the latest
  double tokens_per_second = 0;
  double model_flops = 0;    // per second, of the whole run
  double machine_flops = 0;  // measured rate of matrix products of all ranks together; 0: unknown
  Seconds remaining = 0;     // negative: unknown
};

// "step 120/400  loss 2.104  eval 2.200  12.3 K tokens/s  45.1 of 120 GFLOP/s  3 min 10 s left". Parts that
// do not fit `width` columns are left out from the right end; a bar fills up what room is left. Never longer
// than width.
std::string progress_line(const ProgressState& state, int width);

// The same without a bar, whole.
std::string plain_progress_line(const ProgressState& state);

// Every line goes out in one piece: a launcher mixes what its ranks write.
class Progress {
 public:
  struct Output {
    std::ostream& stream;
    bool terminal = false;
    std::function<int()> width;    // columns, asked at every drawing; terminals only
    std::function<Seconds()> now;  // any clock that only goes forward
    Seconds plain_interval = 10;   // between plain lines
  };
  explicit Progress(Output output);

  // After each step. Draws at most ten times a second, but always the first and the last step.
  void update(ProgressState state);

  // A line of its own, above the bar.
  void say(const std::string& line);

  // Leaves the last bar standing and moves to the next line.
  void finish();

 private:
  void draw();
  Seconds remaining(const ProgressState& state) const;

  Output output_;
  std::int64_t first_step_ = -1;  // that the pace is measured from
  Seconds first_time_ = 0;
  Seconds drawn_ = 0;
  bool drawn_any_ = false;
  bool line_open_ = false;
  ProgressState state_;
};

// Standard error's width in columns, 80 when it cannot be told.
int terminal_width();

}  // namespace penstock::train
