// SPDX-License-Identifier: Apache-2.0
// The schedules that can be planned, and closed forms of the slice-chunks in flight on each device and of the
// bubble, per schedule (docs/schedules.md, "All at one size"): one row each in in_flight.cpp. Tests compare
// each form with the generated schedule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::plan {

// In the search's order: on ties, the search keeps the first candidate.
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
std::vector<std::string_view> schedule_names();  // the generators' names, one per schedule

std::string_view name_of(ScheduleKind kind);
ScheduleKind parse_schedule(std::string_view name);  // throws InputError with the nearest name

struct PipelineShape {
  int devices = 1;        // p
  int micro_batches = 1;  // m
  int slices = 1;         // n
  int chunks = 1;         // v
  int group = 0;          // g, of interleaved slimpipe; 0: automatic
};

// Returns whether the planner supports this shape. n > 1 needs a generator of slices. v is the generator's
// default, or larger if the generator takes any v and the schedule is not V-shaped. Interleaved slimpipe
// needs n >= p, and a group >= p that divides n; interleaved and seq1f1b-interleaved need rounds of equally
// many micro-batches.
bool takes(ScheduleKind kind, const PipelineShape& shape);

bool splits_backward(ScheduleKind kind);  // I and W instead of B
bool is_v_shaped(ScheduleKind kind);      // the last stage is on device 0
bool is_sliced(ScheduleKind kind);        // takes n > 1
bool is_rough(ScheduleKind kind);         // one bound covers both kinds of record; ramp_slots is approximate

// Peak number of records (F until B or I) and of weight records (I until W) on device `rank`, in
// slice-chunks. Exact for schedules that do not split the backward (interleaved: if m is a multiple of p);
// upper bounds for the others.
double records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);
double weight_records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank);

// Both counts on a device at its peak of weight records.
struct HeldRecords {
  double records = 0, weight_records = 0;
};
HeldRecords held_at_peak(ScheduleKind kind, const PipelineShape& shape, int rank);

// Slices that a device runs on one chunk before it switches to the next chunk: the group of slimpipe, a round
// of interleaved schedules, the whole step of breadth-first; n for the others.
int slices_of_turn(ScheduleKind kind, const PipelineShape& shape);

// Values of PipelineShape::group for a search: 0, then twice the automatic group, four times, ... as far as
// they divide n. Larger groups leave transfers more time. Only 0 for schedules and shapes without groups.
std::vector<int> groups_to_try(ScheduleKind kind, const PipelineShape& shape);

// F, I and W of one slice-chunk, as shares of their sum: of a slot.
struct SlotShares {
  double forward = 1.0 / 3, input = 1.0 / 3, weight = 1.0 / 3;
};

// Idle time of a device over the step, in slots (forward plus backward of one slice-chunk), with equal
// slices. It is p − 1 for 1f1b and variants, whose bubble is (p − 1)/(m·n·v + p − 1) of the step. The shares
// count for schedules that split the backward: these are made for F = I = W, and the longer I is than W, as
// at long context, the longer their devices wait; those of v-half and v-min in every micro-batch. Derived
// from the generated schedules (in_flight_test.cpp): exact at F = I = W, except for rough ones, which are
// within 2 slots.
double ramp_slots(ScheduleKind kind, const PipelineShape& shape, const SlotShares& shares = {});

// The number of transfers between neighbouring stages that delay a step whose other transfers overlap with
// compute:
// - one pass along the pipeline and back;
// - one round before every further chunk of a micro-batch, unless slices take turns of more than p;
// - with `steady`, those of the steady state of 1f1b and seq1f1b, where each device waits for its round trip.
// Equals simulation, except for breadth-first and for schedules that split the backward.
double exposed_transfers(ScheduleKind kind, const PipelineShape& shape, bool steady);

// Fraction of slimpipe's slots in which attention is exchanged: all devices run the same kind of work there,
// and the slices that they attend to differ by at least one, or by two if only whole slices move.
double exchange_share(const PipelineShape& shape, bool whole_slices);

}  // namespace penstock::plan
