// SPDX-License-Identifier: Apache-2.0
#include "report/terminal.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/columns.h"
#include "base/text.h"
#include "report/ansi.h"
#include "report/check_timeline.h"
#include "report/palette.h"
#include "schedule/program_words.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Op;
using schedule::OpKind;

constexpr int kLeastWidth = 30;
constexpr const Op* kIdle = nullptr;

// What a device did longest in each of `columns` equal parts of the step.
struct Row {
  std::vector<const Op*> ops;
  Seconds busy = 0;
};

Row row_of(const schedule::DeviceProgram& device, const std::vector<Event>& events, Seconds makespan,
           int columns) {
  Row row{std::vector<const Op*>(columns, kIdle), 0};
  const Seconds width = makespan > 0 ? makespan / columns : 1.0;
  std::vector<Seconds> longest(columns, width * 1e-9), covered(columns, 0.0);
  for (const Event& event : events) {
    const Op& op = device.ops[event.op];
    if (lane_of(op.kind) != schedule::Lane::Compute) continue;
    row.busy += event.end - event.start;
    const int last = std::clamp(static_cast<int>(event.end / width), 0, columns - 1);
    for (int c = std::clamp(static_cast<int>(event.start / width), 0, columns - 1); c <= last; ++c) {
      const Seconds here = std::min(event.end, (c + 1) * width) - std::max(event.start, c * width);
      covered[c] += std::max(here, 0.0);
      if (here > longest[c]) row.ops[c] = &op, longest[c] = here;
    }
  }
  for (int c = 0; c < columns; ++c) {
    if (covered[c] < width / 2) row.ops[c] = kIdle;
  }
  return row;
}

char letter_of(const Op* op) {
  if (op == kIdle) return ' ';
  return is_action(op->kind) ? schedule::word_of(op->kind).text.front() : '+';
}

// Letters, or on coloured ground the last digit of the micro-batch where an op begins.
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
    cell[0] = is_action(op->kind) ? static_cast<char>('0' + op->key.micro_batch % 10) : '+';
    text += paint(colour_of(op->kind), cell);
  }
  return text;
}

std::string axis(int gutter, int columns, Seconds makespan) {
  const std::string end = print_seconds(makespan);
  const int gap = std::max(1, columns - 1 - static_cast<int>(end.size()));
  return std::string(gutter, ' ') + "0" + std::string(gap, ' ') + end + "\n";
}

std::string legend(const schedule::Program& program, bool colour) {
  bool used[schedule::kOpWords.size()] = {};
  for (const auto& device : program.devices) {
    for (const Op& op : device.ops) used[static_cast<std::size_t>(op.kind)] = true;
  }
  constexpr std::string_view meanings[] = {"forward", "backward", "backward for input",
                                           "backward for weights"};
  std::vector<std::string> parts;
  for (const auto& word : schedule::kOpWords) {
    const auto index = static_cast<std::size_t>(word.kind);
    if (!used[index] || !is_action(word.kind)) continue;
    const std::string letter(word.text);
    parts.push_back((colour ? paint(colour_of(word.kind), letter) : letter) + " " +
                    std::string(meanings[index]));
  }
  return join(parts, ", ");
}

}  // namespace

std::string terminal_timeline(const schedule::Program& program, const schedule::Timeline& timeline,
                              const TerminalStyle& style) {
  check_timeline(program, timeline);
  const int devices = program.device_count(), shown = std::min(devices, std::max(style.devices, 1));
  const int digits = static_cast<int>(std::to_string(std::max(devices - 1, 0)).size());
  const int gutter = style.width < 60 ? digits + 2 : digits + 9;  // "12 |", "device 12 |"
  const int columns = std::max(style.width, kLeastWidth) - gutter - 8;
  const Seconds makespan = timeline.makespan();
  std::string text;
  for (int d = 0; d < shown; ++d) {
    const Row row = row_of(program.devices[d], timeline.devices[d], makespan, columns);
    const std::string name = (style.width < 60 ? "" : "device ") + std::to_string(d);
    const std::string share = number(makespan > 0 ? 100 * row.busy / makespan : 0, 0) + " %";
    text += left_aligned(name, gutter - 1) + "|" + cells(row, style.colour) + "| " + right_aligned(share, 6) +
            "\n";
  }
  if (shown < devices) text += "(" + std::to_string(devices - shown) + " more devices)\n";
  return text + axis(gutter, columns, makespan) + std::string(gutter, ' ') + legend(program, style.colour) +
         "\n";
}

}  // namespace penstock::report
