// SPDX-License-Identifier: Apache-2.0
// Progress of a pass over many bytes: a bar redrawn in place in a terminal, plain lines elsewhere.
#pragma once

#include <ostream>
#include <string>

#include "base/units.h"

namespace penstock::cli {

// "[=====>    ] 12.3 MiB of 40.0 MiB  80.1 MiB/s  1 s left" in `width` columns; without a bar when `width` is
// 0.
std::string byte_progress_line(Bytes done, Bytes total, Seconds elapsed, int width);

class ByteProgress {
 public:
  // Draws on standard error.
  explicit ByteProgress(Bytes total);

  void add(Bytes done);  // may throw what ends the work (base/interruption.h)
  void finish();         // draws the last line, with the average rate

 private:
  void draw(Seconds now);

  Bytes total_;
  Bytes done_ = 0;
  bool terminal_;
  Seconds began_, drawn_;
};

}  // namespace penstock::cli
