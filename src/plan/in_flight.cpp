// SPDX-License-Identifier: Apache-2.0
#include "plan/in_flight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/indexed_rows.h"
#include "base/text.h"
#include "base/whole.h"
#include "schedule/generators/generator.h"
#include "schedule/generators/slimpipe.h"
#include "schedule/patterns/rounds.h"

namespace penstock::plan {
namespace {

// The papers' letters, and the values of a device that the forms need.
struct Letters {
  double p = 1, m = 1, n = 1, v = 1;
  double rank = 0;
  double after = 0;  // devices after it
  double round = 1;  // slices in a round of micro-batches
};

struct Form {
  ScheduleKind kind;
  std::string_view name;  // the generator's name
  bool v_shaped = false;
  bool rough = false;
  bool (*takes)(const PipelineShape&) = nullptr;  // beyond the generator's own limits; null: none
  double (*records)(const Letters&) = nullptr;    // capped at m·n·v
  double (*weights)(const Letters&) = nullptr;    // likewise; null: does not split the backward
  double (*ramp)(const Letters&, const SlotShares&) = nullptr;  // null: p − 1
  int (*turn)(const PipelineShape&) = nullptr;                  // null: n
  double (*trips)(const Letters&) = nullptr;  // devices passed while all wait, each way; null: none
};

schedule::Rounds rounds_of(const PipelineShape& shape) { return {ceil_div(shape.devices, shape.slices)}; }

bool has_equal_rounds(const PipelineShape& shape) { return rounds_of(shape).equal(shape.micro_batches); }

int turn_of_group(const PipelineShape& of) {
  return of.group > 0 ? of.group : schedule::slice_group(of.slices, of.devices, of.chunks);
}
int turn_of_round(const PipelineShape& of) {
  return of.micro_batches / rounds_of(of).count(of.micro_batches) * of.slices;
}
int turn_of_step(const PipelineShape& of) { return of.micro_batches * of.slices; }

double everything(const Letters& x) { return x.m * x.n * x.v; }
double records_of_plain(const Letters& x) { return x.n + x.after; }
double records_of_rounds(const Letters& x) { return (x.v - 1) * x.round + 2 * x.after + x.n; }
double records_of_v(const Letters& x) { return 2 * x.p; }
double records_of_v_half(const Letters& x) { return 2 * (std::floor(x.p / 2) + 1); }
double records_of_v_min(const Letters& x) { return 2 * std::floor((x.p + 4) / 3); }
double trips_of_plain(const Letters& x) { return std::floor((x.m - 1) * x.n * (x.p - 1) / x.p); }
double weights_of_full(const Letters& x) { return 1 + 2 * x.rank; }

// A round with fewer units than devices leaves a gap at every change of chunk.
double ramp_of_chunks(const Letters& x, const SlotShares& /*of*/) {
  return x.p - 1 + (x.v - 1) * std::max(0.0, x.p - x.m * x.n);
}

// Idle slots of schedules that split the backward: the longest path through the generated schedule, less a
// device's own work.
double ramp_of_zb_h1(const Letters& x, const SlotShares& of) {
  return (x.p - 1) * (of.forward + of.input) - std::min(x.m - 1, x.p - 1) * of.weight;
}

double ramp_of_zb_h2(const Letters& x, const SlotShares& of) {
  const double missing = std::max(0.0, 2 * x.p - 1 - x.m);  // forwards that the warm-up lacks
  const double even = (x.p - 1) * of.forward + std::ceil(missing / 2) * of.input -
                      (std::ceil(missing / 2) - std::floor(missing / 2)) * of.weight;
  return std::max(even, (x.p - 1) * (of.forward + of.input) - std::min(x.m - 1, 2 * x.p - 2) * of.weight);
}

// In a V with few micro-batches the first forwards wait too.
double ramp_of_v(const Letters& x, const SlotShares& of, double weights) {
  return 2 * (x.p - 1) * of.input + 2 * std::max(0.0, x.p - x.m) * of.forward - weights * of.weight;
}

double ramp_of_zb_v(const Letters& x, const SlotShares& of) {
  const double weights = 2 * std::clamp(x.m - x.p, 0.0, x.p - 1);
  return std::max((x.p - 1) * of.input, ramp_of_v(x, of, weights));
}

// Where no limit of records delays a forward.
double ramp_of_free_v(const Letters& x, const SlotShares& of) {
  return ramp_of_v(x, of, 2 * std::min(x.m, x.p) - 1);
}

double ramp_of_greedy(const Letters& x, const SlotShares& of) {
  return std::max((x.p - 1) * of.input, ramp_of_free_v(x, of));
}

double ramp_of_dualpipe_v(const Letters& x, const SlotShares& of) {
  const double last = x.p - 1;
  if (x.m <= x.p) return ramp_of_v(x, of, -last);
  const double weights = std::max(-last, x.p + 1 - 2 * (x.m - x.p));
  return last * of.input + std::max(last * of.forward, last * of.input - of.forward) + weights * of.weight;
}

// Wait in every micro-batch, beyond the two slots of work, if the chain of actions that one micro-batch hands
// to the next is that long.
double wait_of_chain(const Letters& x, double chain) { return x.p == 1 ? 0 : x.m * std::max(0.0, chain - 2); }

double ramp_of_v_half(const Letters& x, const SlotShares& of) {
  const bool even = std::fmod(x.p, 2) == 0;
  const double full = even ? std::max(3 * x.p - 7, 1.0) : 3 * x.p - 4;
  if (4 * (x.p - x.m) - 1 >= full) return ramp_of_free_v(x, of);
  double chain = 4 * of.input;
  if (x.p >= 4) chain += of.weight;
  if (even && x.p >= 8) chain += of.forward;
  const bool longest = even && x.p >= 16;
  if (longest) chain = 6 * of.input;
  return full * (longest ? of.forward : of.input) + wait_of_chain(x, chain);
}

double ramp_of_v_min(const Letters& x, const SlotShares& of) {
  if (x.m < (x.p + 4) / 3) return ramp_of_free_v(x, of);
  const double full = 4 * x.p - (std::fmod(x.p, 3) == 0 ? 7 : 5);
  const double chain = x.p >= 4   ? 6 * of.input
                       : x.p == 3 ? 3 * of.input + std::max(of.input + of.forward, 3 * of.forward)
                                  : 4 * of.input + of.forward + of.weight;
  return std::max(0.0, full) * (2 * of.forward + of.input) / 3 + wait_of_chain(x, chain);
}

constexpr std::array kForms{
    Form{.kind = ScheduleKind::SlimPipe,
         .name = "slimpipe",
         .takes = [](const PipelineShape& of) { return of.chunks == 1 || of.slices >= of.devices; },
         .records = [](const Letters& x) { return x.n * x.v + 2 * x.after; },
         .turn = turn_of_group},
    Form{
        .kind = ScheduleKind::OneFOneB, .name = "1f1b", .records = records_of_plain, .trips = trips_of_plain},
    Form{.kind = ScheduleKind::Seq1F1B,
         .name = "seq1f1b",
         .records = records_of_plain,
         .trips = trips_of_plain},
    Form{.kind = ScheduleKind::Interleaved,
         .name = "interleaved",
         .takes = has_equal_rounds,
         .records = records_of_rounds,
         .ramp = ramp_of_chunks,
         .turn = turn_of_round},
    Form{.kind = ScheduleKind::SeqInterleaved,
         .name = "seq1f1b-interleaved",
         .takes = has_equal_rounds,
         .records = records_of_rounds,
         .ramp = ramp_of_chunks,
         .turn = turn_of_round},
    Form{.kind = ScheduleKind::GPipe, .name = "gpipe", .records = everything},
    Form{.kind = ScheduleKind::TeraPipe, .name = "terapipe", .records = everything},
    Form{.kind = ScheduleKind::BreadthFirst,
         .name = "breadth-first",
         .records = everything,
         .ramp = ramp_of_chunks,
         .turn = turn_of_step},
    Form{.kind = ScheduleKind::ZbH1,
         .name = "zb-h1",
         .records = [](const Letters& x) { return 1 + x.after; },
         .weights = [](const Letters& x) { return 1 + x.rank; },
         .ramp = ramp_of_zb_h1},
    Form{.kind = ScheduleKind::ZbH2,
         .name = "zb-h2",
         .records = [](const Letters& x) { return 2 * x.after + 1; },
         .weights = weights_of_full,
         .ramp = ramp_of_zb_h2},
    Form{.kind = ScheduleKind::ZbV,
         .name = "zb-v",
         .v_shaped = true,
         .records = records_of_v,
         .weights = weights_of_full,
         .ramp = ramp_of_zb_v},
    Form{.kind = ScheduleKind::VHalf,
         .name = "v-half",
         .v_shaped = true,
         .rough = true,
         .records = records_of_v_half,
         .weights = records_of_v_half,
         .ramp = ramp_of_v_half},
    Form{.kind = ScheduleKind::VMin,
         .name = "v-min",
         .v_shaped = true,
         .rough = true,
         .records = records_of_v_min,
         .weights = records_of_v_min,
         .ramp = ramp_of_v_min},
    Form{.kind = ScheduleKind::DualPipeV,
         .name = "dualpipe-v",
         .v_shaped = true,
         .records = [](const Letters& x) { return 2 * x.p + 1; },
         .weights = [](const Letters& x) { return x.m >= 2 * x.p ? 1 + x.rank : 1; },
         .ramp = ramp_of_dualpipe_v},
    Form{.kind = ScheduleKind::Greedy,
         .name = "greedy",
         .v_shaped = true,
         .rough = true,
         .records = records_of_v,
         .weights = records_of_v,
         .ramp = ramp_of_greedy},
};

static_assert(rows_are_in_order(kForms, &Form::kind), "a kind is the index of its row");

const Form& form_of(ScheduleKind kind) { return kForms.at(static_cast<std::size_t>(kind)); }

const schedule::Generator& generator_of(ScheduleKind kind) {
  static const auto all = [] {
    std::array<const schedule::Generator*, kForms.size()> generators{};
    for (std::size_t i = 0; i < kForms.size(); ++i) generators[i] = &schedule::find_generator(kForms[i].name);
    return generators;
  }();
  return *all.at(static_cast<std::size_t>(kind));
}

Letters letters_of(const PipelineShape& shape, int rank) {
  Letters x;
  x.p = shape.devices;
  x.m = shape.micro_batches;
  x.n = shape.slices;
  x.v = shape.chunks;
  x.rank = rank;
  x.after = shape.devices - rank - 1;
  x.round = turn_of_round(shape);  // p if n divides p and p divides m·n
  return x;
}

}  // namespace

std::vector<ScheduleKind> all_schedules() {
  std::vector<ScheduleKind> kinds;
  for (const Form& form : kForms) kinds.push_back(form.kind);
  return kinds;
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names;
  for (const Form& form : kForms) names.push_back(form.name);
  return names;
}

std::string_view name_of(ScheduleKind kind) { return form_of(kind).name; }

ScheduleKind parse_schedule(std::string_view name) {
  for (const Form& form : kForms) {
    if (form.name == name) return form.kind;
  }
  throw InputError("schedule \"" + printable(name) + "\" cannot be planned" +
                   instead_of(name, schedule_names()));
}

bool splits_backward(ScheduleKind kind) { return form_of(kind).weights != nullptr; }
bool is_v_shaped(ScheduleKind kind) { return form_of(kind).v_shaped; }
bool is_sliced(ScheduleKind kind) { return generator_of(kind).sliced_sibling.empty(); }
bool is_rough(ScheduleKind kind) { return form_of(kind).rough; }

bool takes(ScheduleKind kind, const PipelineShape& shape) {
  const Form& form = form_of(kind);
  const schedule::Generator& generator = generator_of(kind);
  if (shape.slices > 1 && !is_sliced(kind)) return false;
  const bool more_chunks = generator.any_chunks && !form.v_shaped;
  if (shape.chunks < generator.default_chunks) return false;
  if (shape.chunks > generator.default_chunks && !more_chunks) return false;
  if (shape.group > 0 && !(generator.takes_groups && shape.chunks > 1 && shape.group >= shape.devices &&
                           shape.slices % shape.group == 0))
    return false;
  return form.takes == nullptr || form.takes(shape);
}

double records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const Letters x = letters_of(shape, rank);
  return std::min(everything(x), form_of(kind).records(x));
}

double weight_records_in_flight(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const Form& form = form_of(kind);
  if (form.weights == nullptr) return 0;
  const Letters x = letters_of(shape, rank);
  return std::min(everything(x), form.weights(x));
}

// No device holds more records and weight records together than the first holds records. Rough schedules hold
// about half of their bound of weight records, the others all of it; the rest are records.
HeldRecords held_at_peak(ScheduleKind kind, const PipelineShape& shape, int rank) {
  if (!splits_backward(kind)) return {records_in_flight(kind, shape, rank), 0};
  const double both = records_in_flight(kind, shape, 0);
  const double weights = weight_records_in_flight(kind, shape, rank) / (is_rough(kind) ? 2 : 1);
  return {both - weights, weights};
}

int slices_of_turn(ScheduleKind kind, const PipelineShape& shape) {
  const Form& form = form_of(kind);
  return form.turn == nullptr ? shape.slices : form.turn(shape);
}

std::vector<int> groups_to_try(ScheduleKind kind, const PipelineShape& shape) {
  std::vector<int> groups{0};
  if (!generator_of(kind).takes_groups || shape.chunks == 1) return groups;
  const int least = schedule::slice_group(shape.slices, shape.devices, shape.chunks);
  for (int group = 2 * least; shape.slices % group == 0; group *= 2) groups.push_back(group);
  return groups;
}

double ramp_slots(ScheduleKind kind, const PipelineShape& shape, const SlotShares& shares) {
  const Form& form = form_of(kind);
  const Letters x = letters_of(shape, 0);
  return form.ramp == nullptr ? x.p - 1 : std::max(0.0, form.ramp(x, shares));
}

double exposed_transfers(ScheduleKind kind, const PipelineShape& shape, bool steady) {
  const Form& form = form_of(kind);
  const Letters x = letters_of(shape, 0);
  const int turn = slices_of_turn(kind, shape);
  const bool slack = shape.slices > 1 && turn > shape.devices;
  const double around = slack ? 0 : (x.v - 1) * std::max(1, shape.slices / turn);
  const double trips = steady && form.trips != nullptr ? form.trips(x) : 0;
  return 2 * (x.p - 1 + x.p * around + trips);
}

double exchange_share(const PipelineShape& shape, bool whole_slices) {
  const Letters x = letters_of(shape, 0);
  if (x.n <= (whole_slices ? 2 : 1)) return 0;
  if (!whole_slices || x.p > 2) return std::max(0.0, 1 - (x.p - 1) / everything(x));
  // Two devices run neighbouring slices, except at the change of micro-batches or of chunks.
  const double turn = turn_of_group(shape), changes = turn > 2 ? x.m * x.n / turn * (x.v - 1) : 0;
  return (x.m - 1 + changes) / everything(x);
}

}  // namespace penstock::plan
