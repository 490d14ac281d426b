// SPDX-License-Identifier: Apache-2.0
// Closed forms of the slice-chunks in flight on each device and of the bubble, per schedule
// (docs/schedules.md, "All at one size"). Tests compare each form with the generated schedule.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock::plan {

enum class ScheduleKind : std::uint8_t {
  GPipe,
  TeraPipe,
  OneFOneB,
  Seq1F1B,
  Interleaved,
  BreadthFirst,
  SlimPipe,
  ZbH1,
  ZbH2,
  ZbV,
  VHalf,
  VMin,
  SeqInterleaved,
  DualPipeV,
  Greedy,
};
inline constexpr std::array<std::string_view, 15> kScheduleNames{
    "gpipe", "terapipe", "1f1b",   "seq1f1b", "interleaved",         "breadth-first", "slimpipe", "zb-h1",
    "zb-h2", "zb-v",     "v-half", "v-min",   "seq1f1b-interleaved", "dualpipe-v",    "greedy"};

constexpr std::string_view name_of(ScheduleKind kind) {
  return kScheduleNames[static_cast<std::size_t>(kind)];
}
ScheduleKind parse_schedule(std::string_view name);  // InputError names the nearest

struct PipelineShape {
  int devices = 1;        // p
  int micro_batches = 1;  // m
  int slices = 1;         // n
  int chunks = 1;         // v
};

// Whether the schedule supports this shape. Sliced ones take n > 1, looped ones v > 1, V shapes v = 2 only;
// interleaved slimpipe needs n >= p; interleaved and seq1f1b-interleaved need rounds of equally many
// micro-batches.
bool takes(ScheduleKind kind, const PipelineShape& shape);

bool splits_backward(ScheduleKind kind);  // I and W instead of B
bool is_v_shaped(ScheduleKind kind);      // the last stage is on device 0
bool is_sliced(ScheduleKind kind);        // takes n > 1

// Peak records from F until B or I, and weight records from I until W, on device r, in slice-chunks. Exact
// for gpipe, terapipe, 1f1b, seq1f1b, interleaved (m a multiple of p), breadth-first, slimpipe and
// seq1f1b-interleaved; bounds for the others.
double records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);
double weight_records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);

// Idle time of a device over the whole step, in forwards-and-backwards of one slice-chunk at F = I = W and
// equal slices: p − 1 for 1f1b and variants, whose bubble is (p − 1)/(m·n·v + p − 1) of the step. Read off
// the generated schedules (in_flight_test.cpp): exact but for v-half, v-min and greedy, which are within 2
// slots.
double ramp_slots(ScheduleKind kind, const PipelineShape& shape);

}  // namespace penstock::plan
