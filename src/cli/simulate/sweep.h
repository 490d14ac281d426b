// SPDX-License-Identifier: Apache-2.0
// One simulation per value of one setting: what if n were 4, 8, 16?
#pragma once

#include <string>
#include <vector>

#include "cli/simulate/simulation.h"

namespace penstock::cli {

struct SweepRow {
  std::string value;
  std::string refusal;  // why this value is impossible; then the rest is empty
  Seconds makespan = 0;
  double bubble_fraction = 0;
  double span_bubble_fraction = 0;
  int peak_in_flight = 0;    // slice-chunks of the fullest device
  double micro_batches = 0;  // the same in micro-batches' worth of one device's layers
  Bytes peak_bytes = 0;
};

struct Sweep {
  std::string key;
  std::string name;  // of the simulated source
  std::vector<SweepRow> rows;
};

// `setting` is KEY=V1,V2,...: for run files any key (schedule.slices, or short: slices, chunks, devices); for
// --schedule devices, micro_batches, slices or chunks, and the given seconds are those of a whole micro-batch
// on a device, divided among its slices and chunks, of which all micro-batches have as many. Throws
// InputError for unknown keys, and what refuses the last value when none is possible.
Sweep sweep(const SimulateFlags& flags, const std::vector<std::string>& overrides,
            const std::string& setting);

std::string to_table(const Sweep& sweep);
std::string to_json(const Sweep& sweep);
std::string to_svg(
    const Sweep& sweep);  // makespan and peak memory (records in flight where bytes are unknown)

}  // namespace penstock::cli
