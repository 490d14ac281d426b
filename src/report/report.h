// SPDX-License-Identifier: Apache-2.0
// The content of a report: one or more runs with their predictions and measurements. Plain values, filled by
// the caller from a simulation or a run directory; html.h and trace.h draw them. All text is untrusted and
// may contain anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

// Bytes that one device holds, by category, as step functions of time.
struct MemorySeries {
  std::vector<std::string> categories;    // "weights", "activations", ...
  std::vector<Seconds> times;             // ascending; entry i is valid from times[i] until times[i + 1]
  std::vector<std::vector<Bytes>> bytes;  // [category][time]
};

// Seconds that each device was idle for one reason ("ramp", "transfer wait", ...).
struct IdleCause {
  std::string cause;
  std::vector<Seconds> devices;
};

// A call of a kernel within a compute op.
struct KernelSpan {
  std::string kernel;
  std::string block;
  Seconds start = 0;
  Seconds end = 0;
};

// One execution of a program, simulated or measured. The timeline has the devices of the program and, in the
// order of its ops, one event per op.
struct Track {
  std::string label;  // "predicted", "step 12"
  schedule::Timeline timeline;
  std::vector<MemorySeries> memory;              // one per device; empty: unknown
  std::vector<IdleCause> idle;                   // empty: unknown
  std::vector<std::vector<KernelSpan>> kernels;  // one list per device, in order; empty: unknown
};

// A quantity over the steps of a run: loss, tokens per second.
struct Metric {
  std::string name;  // runs that share a name share a chart
  std::string unit;  // "tokens/s"; may be empty
  std::vector<double> steps;
  std::vector<double> values;  // one per step; non-finite values leave a gap
};

// A matrix of numbers around 1, drawn as colours.
struct HeatMap {
  std::string title;
  std::string note;  // may be empty
  std::string row_name, column_name;
  std::vector<std::vector<double>> values;  // [row][column]
};

struct Table {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

// Groups of one kind, of rows that act together.
struct RowGroups {
  std::string name;           // "tensor"
  std::vector<int> group_of;  // one per row
};

struct Run {
  std::string name;
  schedule::Program program;
  std::optional<Track> predicted;
  std::vector<Track> measured;  // steps with a recorded timeline, in order
  std::size_t opens_with = 0;   // the measured step that a page shows first
  std::vector<Metric> metrics;
  std::vector<HeatMap> heat_maps;
  std::vector<Table> tables;  // the accounting of memory and time
  std::string configuration;  // as text; empty: none
  std::vector<std::string> notes;
  std::vector<std::vector<std::string>> slices;  // contents of each [micro-batch][slice]; or empty
  std::vector<std::string> rows;                 // names of the program's devices; empty: "device 0", ...
  std::vector<RowGroups> groups;                 // marked next to the rows of timelines
};

enum class Unit : std::uint8_t { Seconds, Bytes, Count };

// One stacked bar per row, all with the same parts in the same order.
struct BarChart {
  struct Part {
    std::string name;
    std::vector<double> values;  // one per row; not negative
  };
  std::string title;
  std::string note;  // may be empty
  Unit unit = Unit::Count;
  std::vector<std::string> rows;
  std::vector<Part> parts;
};

// Points in a plane: ascending in x and joined as steps, each valid until the next; or, if `compared`, on
// logarithmic scales with the line x = y.
struct PointChart {
  struct Point {
    std::string name;
    double x = 0, y = 0;
  };
  std::string title;
  std::string note;
  std::string x_name, y_name;
  Unit x_unit = Unit::Count, y_unit = Unit::Count;
  std::vector<Point> points;
  bool compared = false;  // x and y are two values of the same positive quantity
};

struct Report {
  std::string title;
  std::vector<Run> runs;
  std::vector<BarChart> bars;      // drawn before the timelines
  std::vector<PointChart> points;  // ... and these before the bars
};

}  // namespace penstock::report
