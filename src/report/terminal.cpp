// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/columns.h"
#include "base/text.h"
#include "report/ansi.h"
#include "report/check_timeline.h"
#include "report/palette.h"
#include "schedule/exchange/time.h"
#include "schedule/program_words.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Op;
using schedule::OpKind;

constexpr int kLeastColumns = 30;
constexpr const Op* kIdle = nullptr;

// The op that a lane of a device ran longest in each of `columns` equal parts of the step.
struct Row {
  std::vector<const Op*> ops;
  Seconds busy = 0;  // with at least one op
};

bool is_drawn(const Op& op, schedule::Lane lane) {
  return lane_of(op.kind) == lane && op.kind != OpKind::ReleaseWeights;  // takes no time
}

bool has_collectives(const schedule::Program& program) {
  return std::ranges::any_of(program.devices, [](const schedule::DeviceProgram& device) {
    return std::ranges::any_of(device.ops,
                               [](const Op& op) { return is_drawn(op, schedule::Lane::Collective); });
  });
}

// Collectives of one device overlap each other and are often short, so each shows in every column that it
// touches.
Row row_of(const schedule::DeviceProgram& device, const std::vector<Event>& events, schedule::Lane lane,
           Seconds makespan, int columns) {
  Row row{std::vector<const Op*>(columns, kIdle), 0};
  const Seconds width = makespan > 0 ? makespan / columns : 1.0;
  std::vector<Seconds> longest(columns, width * 1e-9), covered(columns, 0.0);
  Seconds busy_until = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Op& op = device.ops[i];
    const Event& event = events[i];
    if (!is_drawn(op, lane)) continue;
    row.busy += std::max(0.0, event.end - std::max(event.start, busy_until));
    busy_until = std::max(busy_until, event.end);
    const int last = std::clamp(static_cast<int>(event.end / width), 0, columns - 1);
    for (int c = std::clamp(static_cast<int>(event.start / width), 0, columns - 1); c <= last; ++c) {
      const Seconds here = std::min(event.end, (c + 1) * width) - std::max(event.start, c * width);
      covered[c] += std::max(here, 0.0);
      if (here > longest[c]) row.ops[c] = &op, longest[c] = here;
    }
  }
  for (int c = 0; c < columns && lane == schedule::Lane::Compute; ++c) {
    if (covered[c] < width / 2) row.ops[c] = kIdle;
  }
  return row;
}

// Serving context exchange counts as busy; waiting for it inside an op does not.
Seconds computing_seconds(const schedule::Program& program, const schedule::Timeline& timeline, int d) {
  std::span<const schedule::ExchangeSpan> exchanges;
  if (!timeline.exchanges.empty()) exchanges = timeline.exchanges[d];
  return schedule::busy_seconds(program.devices[d], timeline.devices[d], exchanges);
}

char letter_of(const Op* op) {
  if (op == kIdle) return ' ';
  const bool has_letter = is_action(op->kind) || lane_of(op->kind) == schedule::Lane::Collective;
  return has_letter ? schedule::word_of(op->kind).text.front() : '+';
}

char digit_of(const Op& op) {
  if (lane_of(op.kind) == schedule::Lane::Collective) return static_cast<char>('0' + op.key.stage % 10);
  return is_action(op.kind) ? static_cast<char>('0' + op.key.micro_batch % 10) : '+';
}

// Letters; or, with colours, the last digit of the micro-batch, or stage, where an op begins.
std::string cells(const Row& row, bool colour) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < row.ops.size(); begin = end) {
    const Op* op = row.ops[begin];
    while (end < row.ops.size() && row.ops[end] == op) ++end;
    if (!colour || op == kIdle) {
      text += std::string(end - begin, letter_of(op));
      continue;
    }
    std::string cell(end - begin, ' ');
    cell[0] = digit_of(*op);
    text += paint(colour_of(op->kind), cell);
  }
  return text;
}

std::string axis(int gutter, int columns, Seconds makespan) {
  const std::string end = print_seconds(makespan);
  const int gap = std::max(1, columns - 1 - static_cast<int>(end.size()));
  return std::string(gutter, ' ') + "0" + std::string(gap, ' ') + end + "\n";
}

// `with_others`: the rows show work without a letter.
std::string legend(const schedule::Program& program, bool colour, bool with_others) {
  bool used[schedule::kOpWords.size()] = {};
  for (const auto& device : program.devices) {
    for (const Op& op : device.ops) used[static_cast<std::size_t>(op.kind)] = true;
  }
  const auto meaning = [](OpKind kind) -> std::string_view {
    constexpr std::string_view of_actions[] = {"forward", "backward", "backward for input",
                                               "backward for weights"};
    if (is_action(kind)) return of_actions[static_cast<std::size_t>(kind)];
    if (kind == OpKind::ReduceGradients) return "gradients reduced";
    return kind == OpKind::GatherWeights ? "weights gathered" : "";
  };
  std::vector<std::string> parts;
  for (const auto& word : schedule::kOpWords) {
    if (!used[static_cast<std::size_t>(word.kind)] || meaning(word.kind).empty()) continue;
    const std::string letter(1, word.text.front());
    parts.push_back((colour ? paint(colour_of(word.kind), letter) : letter) + " " +
                    std::string(meaning(word.kind)));
  }
  const bool sharded_vocabulary = used[static_cast<std::size_t>(OpKind::VocabularyLoss)];
  if (with_others) parts.push_back(sharded_vocabulary ? "+ loss, embedding and optimizer" : "+ optimizer");
  return join(parts, ", ");
}

}  // namespace

std::string terminal_timeline(const schedule::Program& program, const schedule::Timeline& timeline,
                              const TerminalStyle& style) {
  check_timeline(program, timeline);
  const int devices = program.device_count(), shown = std::min(devices, std::max(style.devices, 1));
  const int digits = static_cast<int>(std::to_string(std::max(devices - 1, 0)).size());
  const bool narrow = style.width < 60, collectives = has_collectives(program);
  const int least = collectives && !narrow ? 12 : 0;                     // "collective |"
  const int gutter = std::max(least, narrow ? digits + 2 : digits + 9);  // "12 |", "device 12 |"
  const int columns = std::max(style.width, kLeastColumns) - gutter - 8;
  const Seconds makespan = timeline.makespan();
  std::string text;
  const auto add_line = [&](int d, schedule::Lane lane, const std::string& name) {
    Row row = row_of(program.devices[d], timeline.devices[d], lane, makespan, columns);
    if (lane == schedule::Lane::Compute) row.busy = computing_seconds(program, timeline, d);
    const std::string share = number(makespan > 0 ? 100 * row.busy / makespan : 0, 0) + " %";
    text += left_aligned(name, gutter - 1) + "|" + cells(row, style.colour) + "| " + right_aligned(share, 6) +
            "\n";
  };
  for (int d = 0; d < shown; ++d) {
    add_line(d, schedule::Lane::Compute, (narrow ? "" : "device ") + std::to_string(d));
    if (collectives) add_line(d, schedule::Lane::Collective, narrow ? "" : "collective");
  }
  if (shown < devices) text += "(" + std::to_string(devices - shown) + " more devices)\n";
  const bool with_others = text.find('+') != std::string::npos;
  return text + axis(gutter, columns, makespan) + std::string(gutter, ' ') +
         legend(program, style.colour, with_others) + "\n";
}

}  // namespace penstock::report
