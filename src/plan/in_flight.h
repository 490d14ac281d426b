// SPDX-License-Identifier: Apache-2.0
// The schedules that can be planned, and closed forms of the slice-chunks in flight on each device and of the
// bubble, per schedule (docs/schedules.md, "All at one size"): one row each in in_flight.cpp. Tests compare
// each form with the generated schedule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::plan {

// In the order in which the search visits them: of equal candidates the first stays.
enum class ScheduleKind : std::uint8_t {
  SlimPipe,
  OneFOneB,
  Seq1F1B,
  Interleaved,
  SeqInterleaved,
  GPipe,
  TeraPipe,
  BreadthFirst,
  ZbH1,
  ZbH2,
  ZbV,
  VHalf,
  VMin,
  DualPipeV,
  Greedy,
};

std::vector<ScheduleKind> all_schedules();
std::vector<std::string_view> schedule_names();  // of all, the generators'

std::string_view name_of(ScheduleKind kind);
ScheduleKind parse_schedule(std::string_view name);  // InputError names the nearest

struct PipelineShape {
  int devices = 1;        // p
  int micro_batches = 1;  // m
  int slices = 1;         // n
  int chunks = 1;         // v
};

// Whether the schedule is planned with this shape: n > 1 where its generator slices; v its generator's
// default, or more where that takes any and the schedule is no V; interleaved slimpipe needs n >= p;
// interleaved and seq1f1b-interleaved need rounds of equally many micro-batches.
bool takes(ScheduleKind kind, const PipelineShape& shape);

bool splits_backward(ScheduleKind kind);  // I and W instead of B
bool is_v_shaped(ScheduleKind kind);      // the last stage is on device 0
bool is_sliced(ScheduleKind kind);        // takes n > 1
bool is_rough(ScheduleKind kind);         // its records bound both kinds together; see ramp_slots

// Peak records from F until B or I, and weight records from I until W, on device r, in slice-chunks. Exact
// for schedules that do not split the backward (interleaved: m a multiple of p); bounds for the others.
double records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);
double weight_records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);

// Both, on device r at the peak of weight records.
struct HeldRecords {
  double records = 0, weight_records = 0;
};
HeldRecords held_at_peak(ScheduleKind kind, const PipelineShape& shape, int rank);

// Slices that a device runs through one chunk before it turns to the next, several chunks given: the group of
// slimpipe, a round of interleaved schedules, the step of breadth-first; n of the others.
int slices_of_turn(ScheduleKind kind, const PipelineShape& shape);

// Idle time of a device over the whole step, in forwards-and-backwards of one slice-chunk at F = I = W and
// equal slices: p − 1 for 1f1b and variants, whose bubble is (p − 1)/(m·n·v + p − 1) of the step. Read off
// the generated schedules (in_flight_test.cpp): exact but for rough ones, which are within 2 slots.
double ramp_slots(ScheduleKind kind, const PipelineShape& shape);

}  // namespace penstock::plan
