// SPDX-License-Identifier: Apache-2.0
// penstock profile: measures this machine and writes its hardware file, as ranks of mpirun or as threads.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace penstock::cli {

struct ProfileFlags {
  int ranks = 0;  // 0: two, or the number of cores if fewer; one per GPU
  int threads = 0;
  bool quick = false;
  std::string out;
  std::string name = "this-machine";
  std::string precision;
  std::string device = "cpu";
  std::optional<double> budget;
};

Exit profile_machine(const ProfileFlags& flags);

}  // namespace penstock::cli
