// SPDX-License-Identifier: Apache-2.0
// Measures this machine and describes it as a hardware file.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "model/shape.h"

namespace penstock::cli {

struct MeasureOptions {
  std::string name = "this-machine";
  model::Precision precision = model::Precision::BF16;  // of attention and elementwise work
  bool quick = false;             // fewer sizes and repeats, products in `precision` alone
  int threads = 1;                // of each rank
  std::optional<Seconds> budget;  // of a figure's repeats; 0: once, not warmed up; none: as usual
  std::string disk_folder = ".";
};

// Receives the name of each measurement, on rank 0.
using SayMeasured = std::function<void(const std::string& what)>;

// Collective: all ranks work at once. The text on rank 0; empty on the others. `transport`: in words.
std::string measured_as_rank(const MeasureOptions& options, comm::Communicator& world,
                             const std::string& transport, const SayMeasured& say);

// The same with ranks as threads of this process.
std::string measured_here(const MeasureOptions& options, int ranks, const SayMeasured& say);

}  // namespace penstock::cli
