// SPDX-License-Identifier: Apache-2.0
// The lines with which a command reports its failure, found in its stderr.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace penstock::cli {

// Returns <failure> from "rank 1: <failure> (p1, host n3)", failure_line() of cli/train/recorded.h; empty if
// the line has another form.
std::optional<std::string> failure_of_rank(const std::string& complaint);

// Finds complaints, lines "penstock: ..." other than remarks (cli/tell.h), in text that arrives piece by
// piece. They may follow the line that a progress bar left open, and a launcher's tag: "[1,0]<stderr>:" of
// mpirun --tag-output, "0: " of srun
// --label.
class Complaints {
 public:
  void read(std::string_view text);
  // The first complaint of any rank; otherwise the last one, since reports on stderr may come before it.
  const std::string& reason() const { return of_rank_.empty() ? last_ : of_rank_; }
  // Time of the first failure that a rank reported, after which the command ends by itself; 0: none.
  Seconds failed_at() const { return failed_at_; }

 private:
  void note(const std::string& complaint);

  std::string line_, last_, of_rank_;
  Seconds failed_at_ = 0;
};

}  // namespace penstock::cli
