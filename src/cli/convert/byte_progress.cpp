// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/byte_progress.h"

#include <unistd.h>

#include <iostream>

#include "base/clock.h"
#include "base/interruption.h"
#include "train/record/progress.h"

namespace penstock::cli {
namespace {

constexpr Seconds kPlainInterval = 10;

}  // namespace

std::string byte_progress_line(Bytes done, Bytes total, Seconds elapsed, int width) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const double rate = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  std::string line =
      print_bytes(done) + " of " + print_bytes(total) + "  " + print_bytes(static_cast<Bytes>(rate)) + "/s";
  if (rate > 0 && done < total)
    line += "  " + print_seconds(static_cast<double>(total - done) / rate) + " left";
  return train::with_bar(share, line, width);
}

ByteProgress::ByteProgress(Bytes total)
    : total_(total), terminal_(isatty(STDERR_FILENO) == 1), began_(steady_seconds()), drawn_(began_) {}

void ByteProgress::add(Bytes done) {
  allow_interruption();
  done_ += done;
  const Seconds now = steady_seconds();
  if (now - drawn_ >= (terminal_ ? train::kRedraw : kPlainInterval)) draw(now);
}

void ByteProgress::draw(Seconds now) {
  drawn_ = now;
  if (terminal_) {
    std::cerr << '\r' << byte_progress_line(done_, total_, now - began_, train::terminal_width() - 1)
              << "\x1b[K" << std::flush;
  } else {
    std::cerr << byte_progress_line(done_, total_, now - began_, 0) << std::endl;
  }
}

void ByteProgress::finish() {
  draw(steady_seconds());
  if (terminal_) std::cerr << std::endl;
}

}  // namespace penstock::cli
