// SPDX-License-Identifier: Apache-2.0
#include "report/drawing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "report/palette.h"
#include "schedule/program_text.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::Kind;
using schedule::Op;
using schedule::OpKind;

// Which of its device's chunks a stage is.
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

OpKind op_kind(Kind kind) {
  switch (kind) {
    case Kind::Backward:
      return OpKind::Backward;
    case Kind::BackwardInput:
      return OpKind::BackwardInput;
    case Kind::BackwardWeight:
      return OpKind::BackwardWeight;
    case Kind::ReduceGradients:
      return OpKind::ReduceGradients;
    default:
      return OpKind::Forward;
  }
}

std::string label_of(int micro_batch, int slice, bool sliced) {
  return sliced ? std::to_string(micro_batch) + '.' + std::to_string(slice) : std::to_string(micro_batch);
}

std::string row_name(int device) { return "device " + std::to_string(device); }

std::string label_of(const Op& op, bool sliced) {
  if (op.kind == OpKind::ReduceGradients) return "R";
  return op.kind == OpKind::OptimizerStep ? "step" : label_of(op.micro_batch, op.slice, sliced);
}

Box box_of(int device, const Cell& cell, bool sliced, const Chunks& chunks) {
  const schedule::Action& action = cell.action;
  const bool reduces = action.kind == Kind::ReduceGradients;
  return {.row = device,
          .start = static_cast<double>(cell.start),
          .end = static_cast<double>(cell.end),
          .kind = op_kind(action.kind),
          .lightness = chunks.lightness(action.stage),
          .label = reduces ? "R" : label_of(action.micro_batch, action.slice, sliced),
          .hint = to_token(action, sliced) + " on " + row_name(device) + ", " + std::to_string(cell.start) +
                  " to " + std::to_string(cell.end)};
}

Box box_of(int device, const Op& op, const schedule::Event& event, bool sliced, const Chunks& chunks) {
  return {.row = device,
          .start = event.start,
          .end = event.end,
          .kind = op.kind,
          .lightness = is_action(op.kind) ? chunks.lightness(op.stage) : 1,
          .label = label_of(op, sliced),
          .hint = to_token(op, sliced) + " on " + row_name(device) + ", from " + print_seconds(event.start) +
                  " for " + print_seconds(event.end - event.start)};
}

// Among the rows of its device; nothing for lanes that are not drawn.
std::optional<int> row_of(schedule::Lane lane) {
  switch (lane) {
    case schedule::Lane::Compute:
      return 0;
    case schedule::Lane::CopyOut:
      return 1;
    case schedule::Lane::CopyIn:
      return 2;
    default:
      return {};
  }
}

// Who takes a part of an action's attention, and whose part is taken during it.
class HelpNotes {
 public:
  HelpNotes(const schedule::Program& program, bool sliced) {
    for (const schedule::Help& help : program.help) {
      const std::string halves = std::to_string(help.halves) + " half slices";
      note(help.owner, help.of, '-', "; " + row_name(help.helper) + " attends to " + halves);
      note(help.helper, help.during, '+', "; attends for " + to_token(help.of, sliced) + " to " + halves);
    }
  }

  void add_to(Box& box, int device, const Op& op) const {
    const auto found = notes_.find({device, op.kind, op.stage, op.micro_batch, op.slice});
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
    Note& known = notes_[{device, op_kind(action.kind), action.stage, action.micro_batch, action.slice}];
    known.sign = sign;
    known.hint += hint;
  }

  std::map<std::tuple<int, OpKind, int, int, int>, Note> notes_;
};

bool has_copies(const schedule::Program& program) {
  return std::ranges::any_of(program.devices, [](const schedule::DeviceProgram& device) {
    return std::ranges::any_of(device.ops, [](const Op& op) { return op.kind == schedule::OpKind::Offload; });
  });
}

}  // namespace

Drawing draw(const schedule::Schedule& schedule, const UnitTimes& times) {
  const Layout layout = lay_out(schedule, times);
  Drawing drawing{.title = schedule.name, .end = static_cast<double>(layout.end)};
  drawing.unit = layout.in_time ? "time units (" + describe(times) + ")" : "position in the row";
  const bool sliced = is_sliced(schedule);
  for (int device = 0; device < schedule.device_count(); ++device) {
    drawing.rows.push_back(row_name(device));
    Chunks chunks;
    for (const Cell& cell : layout.devices[device]) chunks.add(cell.action.stage);
    for (const Cell& cell : layout.devices[device])
      drawing.boxes.push_back(box_of(device, cell, sliced, chunks));
  }
  return drawing;
}

Drawing draw(const schedule::Program& program, const schedule::Timeline& timeline) {
  PENSTOCK_CHECK(timeline.devices.size() == program.devices.size(), "a timeline has a row for each device");
  Drawing drawing{.title = program.name, .end = timeline.makespan(), .unit = "s"};
  const bool sliced = std::ranges::any_of(program.slices, [](int n) { return n != 1; });
  const bool copies = has_copies(program);
  const HelpNotes notes(program, sliced);
  for (int device = 0; device < program.device_count(); ++device) {
    const int row = static_cast<int>(drawing.rows.size());
    drawing.rows.push_back(row_name(device));
    if (copies) drawing.rows.insert(drawing.rows.end(), {"copy out", "copy in"});
    const std::vector<Op>& ops = program.devices[device].ops;
    Chunks chunks;
    for (const Op& op : ops) {
      if (is_action(op.kind)) chunks.add(op.stage);
    }
    for (const schedule::Event& event : timeline.devices[device]) {
      const Op& op = ops[event.op];
      const std::optional<int> below = row_of(lane_of(op.kind));
      if (!below) continue;
      drawing.boxes.push_back(box_of(device, op, event, sliced, chunks));
      drawing.boxes.back().row = row + *below;
      notes.add_to(drawing.boxes.back(), device, op);
    }
  }
  return drawing;
}

}  // namespace penstock::report
