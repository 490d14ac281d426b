// SPDX-License-Identifier: Apache-2.0
// One simulation per value of a setting: what if n were 4, 8, 16?
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
  int peak_in_flight = 0;    // slice-chunks on the fullest device
  double micro_batches = 0;  // the same, in micro-batches of one device's layers
  Bytes peak_bytes = 0;
  Words notes = {};  // as for one simulation
};

struct Sweep {
  std::string key;
  std::string name = {};  // name of the simulated source
  std::vector<SweepRow> rows = {};
  Speeds speeds = {};  // of the first possible row; empty origin unless the source is a run file
};

// `setting` is KEY=V1,V2,..., where commas in [lists] and "texts" are the value's own: for run files any key
// (schedule.slices, or short: slices, chunks, devices); for
// --schedule devices, micro_batches, slices or chunks. With --schedule the given seconds are for a whole
// micro-batch on one device, split over its slices and chunks; all micro-batches have the same number. Throws
// InputError for unknown keys, and the last value's refusal if no value is possible.
Sweep sweep(const SimulateFlags& flags, const std::vector<std::string>& overrides,
            const std::string& setting);

// Notes of the rows, each once; those that not all possible rows have begin with their KEY = VALUE.
Words notes_of(const Sweep& sweep);

std::string to_table(const Sweep& sweep);
std::string to_json(const Sweep& sweep);
std::string to_svg(
    const Sweep& sweep);  // makespan and peak of saved bytes (records in flight where bytes are unknown)

}  // namespace penstock::cli
