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
  model::Precision precision = model::Precision::BF16;  // for attention and elementwise work
  bool quick = false;             // fewer sizes and repeats, matmuls only in `precision`
  int threads = 1;                // per rank
  std::optional<Seconds> budget;  // for repeats of one figure; 0: once, no warm-up; empty: default
  std::string disk_folder = ".";
};

// Receives the name of each measurement; called on rank 0.
using SayMeasured = std::function<void(const std::string& what)>;

// Measures on all ranks at once. Returns the hardware file's text on rank 0, empty text on the others.
// `transport`: in words. Collective.
std::string measured_as_rank(const MeasureOptions& options, comm::Communicator& world,
                             const std::string& transport, const SayMeasured& say);

// The same with ranks as threads of this process.
std::string measured_here(const MeasureOptions& options, int ranks, const SayMeasured& say);

}  // namespace penstock::cli
