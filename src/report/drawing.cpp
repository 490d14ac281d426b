// SPDX-License-Identifier: Apache-2.0
#include "report/drawing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/interruption.h"
#include "base/units.h"
#include "report/palette.h"
#include "schedule/passes/shard.h"
#include "schedule/program_text.h"
#include "schedule/program_words.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::Kind;
using schedule::Op;
using schedule::OpKind;

// The stages of a device, and which of its chunks each stage is.
class Chunks {
 public:
  void add(int stage) { stages_.insert(stage); }

  double lightness(int stage) const {
    const auto chunk = static_cast<int>(std::distance(stages_.begin(), stages_.find(stage)));
    return chunk_lightness(chunk, static_cast<int>(stages_.size()));
  }

 private:
  std::set<int> stages_;
};

std::string label_of(int micro_batch, int slice, bool sliced) {
  return sliced ? std::to_string(micro_batch) + '.' + std::to_string(slice) : std::to_string(micro_batch);
}

std::string row_name(int device) { return "device " + std::to_string(device); }

std::string label_of(const Op& op, bool sliced) {
  if (op.kind == OpKind::ReduceGradients) return "R" + std::to_string(op.key.stage);
  if (op.kind == OpKind::GatherWeights) return "G" + std::to_string(op.key.stage);
  if (op.kind == OpKind::ReleaseWeights) return {};
  return op.kind == OpKind::OptimizerStep ? "step" : label_of(op.key.micro_batch, op.key.slice, sliced);
}

Box box_of(int device, const Cell& cell, bool sliced, const Chunks& chunks) {
  const schedule::Action& action = cell.action;
  const bool reduces = action.kind == Kind::ReduceGradients;
  return {.row = device,
          .start = static_cast<double>(cell.start),
          .end = static_cast<double>(cell.end),
          .kind = op_kind(action.kind),
          .lightness = chunks.lightness(action.key.stage),
          .label = reduces ? "R" : label_of(action.key.micro_batch, action.key.slice, sliced),
          .hint = to_token(action, sliced) + " on " + row_name(device) + ", " + std::to_string(cell.start) +
                  " to " + std::to_string(cell.end)};
}

// Names the unit where the token does not: "1GATHER_WEIGHTS of stage 1".
std::string name_of(const schedule::Program& program, const Op& op, bool sliced) {
  const bool of_unit = schedule::word_of(op.kind).key == schedule::KeyForm::Stage;
  return to_token(op, sliced) + (of_unit ? " of " + unit_text(program, op) : "");
}

Box box_of(const schedule::Program& program, int device, const Op& op, const schedule::Event& event,
           bool sliced, const Chunks& chunks, bool in_seconds) {
  const auto text = in_seconds ? print_seconds : print_count;
  return {.row = device,
          .start = event.start,
          .end = event.end,
          .kind = op.kind,
          .lightness = is_action(op.kind) ? chunks.lightness(op.key.stage) : 1,
          .label = label_of(op, sliced),
          .hint = name_of(program, op, sliced) + " on " + row_name(device) + ", from " + text(event.start) +
                  " for " + text(event.end - event.start)};
}

constexpr std::string_view lane_name(schedule::Lane lane) {
  if (lane == schedule::Lane::Collective) return "collective";
  return lane == schedule::Lane::CopyOut ? "copy out" : "copy in";
}

// The lanes drawn for each device, from top to bottom.
std::vector<schedule::Lane> drawn_lanes(const schedule::Program& program) {
  using schedule::Lane;
  const auto any = [&](Lane lane) {
    return std::ranges::any_of(program.devices, [&](const schedule::DeviceProgram& device) {
      return std::ranges::any_of(device.ops, [&](const Op& op) { return lane_of(op.kind) == lane; });
    });
  };
  std::vector<Lane> lanes{Lane::Compute};
  if (any(Lane::CopyOut)) lanes.insert(lanes.end(), {Lane::CopyOut, Lane::CopyIn});
  if (any(Lane::Collective)) lanes.push_back(Lane::Collective);
  return lanes;
}

// Notes on which device takes a part of an action's attention, and for whom a device attends during an
// action.
class ExchangeNotes {
 public:
  ExchangeNotes(const schedule::Program& program, bool sliced) {
    for (const schedule::Exchange& exchange : program.exchanges) {
      const std::string halves = std::to_string(exchange.halves) + " half slices";
      note(exchange.owner, exchange.of, '-', "; " + row_name(exchange.partner) + " attends to " + halves);
      note(exchange.partner, exchange.during, '+',
           "; attends for " + to_token(exchange.of, sliced) + " to " + halves);
    }
  }

  void add_to(Box& box, int device, const Op& op) const {
    const auto found = notes_.find({device, op.kind, op.key});
    if (found == notes_.end()) return;
    box.label += found->second.sign;
    box.hint += found->second.hint;
  }

 private:
  struct Note {
    char sign = '-';
    std::string hint;
  };

  void note(int device, const schedule::Action& action, char sign, const std::string& hint) {
    Note& known = notes_[{device, op_kind(action.kind), action.key}];
    known.sign = sign;
    known.hint += hint;
  }

  std::map<std::tuple<int, OpKind, schedule::Key>, Note> notes_;
};

}  // namespace

std::string unit_text(const schedule::Program& program, const Op& op) {
  if (op.key.stage == vocabulary_unit(program)) return "the sharded vocabulary";
  return "stage " + std::to_string(op.key.stage);
}

Drawing draw(const schedule::Schedule& schedule, const UnitTimes& times) {
  const Layout layout = lay_out(schedule, times);
  Drawing drawing{.title = schedule.name, .end = static_cast<double>(layout.end)};
  drawing.unit = layout.in_time ? "time units (" + describe(times) + ")" : "position in the row";
  const bool sliced = is_sliced(schedule);
  for (int device = 0; device < schedule.device_count(); ++device) {
    drawing.rows.push_back(row_name(device));
    Chunks chunks;
    for (const Cell& cell : layout.devices[device]) chunks.add(cell.action.key.stage);
    for (const Cell& cell : layout.devices[device]) {
      allow_interruption();
      drawing.boxes.push_back(box_of(device, cell, sliced, chunks));
    }
  }
  return drawing;
}

Drawing draw(const schedule::Program& program, const schedule::Timeline& timeline, const std::string& unit) {
  PENSTOCK_CHECK(timeline.devices.size() == program.devices.size(), "a timeline has a row for each device");
  Drawing drawing{.title = program.name, .end = timeline.makespan(), .unit = unit};
  const bool sliced = is_sliced(program);
  const std::vector<schedule::Lane> lanes = drawn_lanes(program);
  const ExchangeNotes notes(program, sliced);
  for (int device = 0; device < program.device_count(); ++device) {
    const int row = static_cast<int>(drawing.rows.size());
    drawing.rows.push_back(row_name(device));
    for (const schedule::Lane lane : lanes) {
      if (lane != schedule::Lane::Compute) drawing.rows.emplace_back(lane_name(lane));
    }
    const std::vector<Op>& ops = program.devices[device].ops;
    Chunks chunks;
    for (const Op& op : ops) {
      if (is_action(op.kind)) chunks.add(op.key.stage);
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      allow_interruption();
      const Op& op = ops[i];
      const auto lane = std::ranges::find(lanes, lane_of(op.kind));
      if (lane == lanes.end()) continue;
      drawing.boxes.push_back(
          box_of(program, device, op, timeline.devices[device][i], sliced, chunks, unit == "s"));
      drawing.boxes.back().row = row + static_cast<int>(lane - lanes.begin());
      notes.add_to(drawing.boxes.back(), device, op);
    }
  }
  return drawing;
}

}  // namespace penstock::report
