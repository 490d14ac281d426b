// SPDX-License-Identifier: Apache-2.0
#include "schedule/text.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/error.h"
#include "base/interruption.h"
#include "base/text.h"

namespace penstock::schedule {
namespace {

constexpr std::string_view kReduce = "REDUCE_GRAD";
constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kProgramsHead = "penstock program ";
constexpr std::string_view kLoneIdleCell =
    "\"\"";  // as Python's csv writes it: an empty line is a row without cells

[[noreturn]] void refuse_token(std::string_view token) {
  throw InputError(
      '"' + printable(token) +
      "\" is not an action; expected <stage><F|B|I|W><micro-batch>[.<slice>], as in 3F2 or 0B1.7");
}

[[noreturn]] void refuse_number(std::string_view token, std::string_view digits, std::string_view what,
                                int most) {
  throw InputError('"' + printable(token) + "\" names " + std::string(what) + ' ' + printable(digits, 20) +
                   "; the greatest is " + std::to_string(most));
}

char letter_of(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return 'F';
    case Kind::Backward:
      return 'B';
    case Kind::BackwardInput:
      return 'I';
    case Kind::BackwardWeight:
      return 'W';
    default:
      broken_invariant("is_compute(kind)", "only compute actions have a letter", __FILE__, __LINE__);
  }
}

// Removes a number from the front of `rest`, which is part of `token`, and returns it.
int take_number(std::string_view& rest, std::string_view token, std::string_view what, int most) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::find_if_not(rest.begin(), rest.end(), digit);
  const std::string_view digits(rest.begin(), end);
  if (digits.empty()) refuse_token(token);
  int value = 0;
  const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  rest.remove_prefix(digits.size());
  if (error != std::errc() || value > most) refuse_number(token, digits, what, most);
  return value;
}

void append_token(std::string& text, const Action& action, bool with_slice) {
  if (action.kind == Kind::Idle) return;
  char digits[16];
  const auto append = [&](int value) {
    text.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
  };
  append(action.key.stage);
  if (action.kind == Kind::ReduceGradients) {
    text += kReduce;
    return;
  }
  text += letter_of(action.kind);
  append(action.key.micro_batch);
  if (!with_slice) return;
  text += '.';
  append(action.key.slice);
}

// Appends the cell that begins with row[i]; returns how many actions it holds.
std::size_t append_cell(std::string& text, const std::vector<Action>& row, std::size_t i, bool with_slice) {
  if (!row[i].overlaps_next) {
    append_token(text, row[i], with_slice);
    return 1;
  }
  PENSTOCK_CHECK(i + 1 < row.size() && !row[i + 1].overlaps_next,
                 "overlaps_next marks the first of two actions");
  text += '(';
  append_token(text, row[i], with_slice);
  text += ';';
  append_token(text, row[i + 1], with_slice);
  text += ')';
  text += kOverlap;
  return 2;
}

std::string cell_at(const std::vector<Action>& row, std::size_t& i, bool with_slice) {
  std::string cell;
  i += append_cell(cell, row, i, with_slice);
  return cell;
}

void parse_pair(std::string_view cell, std::vector<Action>& row) {
  const std::size_t close = cell.find(')');
  if (close == std::string_view::npos || cell.substr(close + 1) != kOverlap) refuse_token(cell);
  const std::vector<std::string_view> parts = split(cell.substr(1, close - 1), ';');
  if (parts.size() != 2) refuse_token(cell);
  for (const std::string_view part : parts) {
    row.push_back(parse_token(trim(part)));
    if (!is_compute(row.back().kind)) refuse_token(cell);
  }
  row[row.size() - 2].overlaps_next = true;
}

// Error messages count rows and columns from 1.
std::vector<Action> parse_row(std::string_view line, std::size_t row_number, std::string_view origin) {
  std::vector<Action> row;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return row;
  row.reserve(static_cast<std::size_t>(std::ranges::count(line, ',')) + 1);
  for (std::size_t column = 1;; ++column) {
    const std::size_t end = line.find(',');
    try {
      parse_cell(line.substr(0, end), row);
    } catch (const InputError& error) {
      throw InputError(std::string(origin) + ": row " + std::to_string(row_number) + ", column " +
                       std::to_string(column) + ": " + error.what());
    }
    if (end == std::string_view::npos) return row;
    line.remove_prefix(end + 1);
  }
}

}  // namespace

std::string to_token(const Action& action, bool with_slice) {
  std::string token;
  append_token(token, action, with_slice);
  return token;
}

Kind kind_of(char letter) {
  switch (letter) {
    case 'F':
      return Kind::Forward;
    case 'B':
      return Kind::Backward;
    case 'I':
      return Kind::BackwardInput;
    case 'W':
      return Kind::BackwardWeight;
    default:
      return Kind::Idle;
  }
}

Action parse_token(std::string_view token) {
  if (token.empty()) return {};
  std::string_view rest = token;
  Action action;
  action.key.stage = take_number(rest, token, "stage", kMostStages - 1);
  if (rest == kReduce) {
    action.kind = Kind::ReduceGradients;
    return action;
  }
  action.kind = rest.empty() ? Kind::Idle : kind_of(rest.front());
  if (action.kind == Kind::Idle) refuse_token(token);
  rest.remove_prefix(1);
  action.key.micro_batch = take_number(rest, token, "micro-batch", kMostMicroBatches - 1);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    action.key.slice = static_cast<std::int16_t>(take_number(rest, token, "slice", kMostSlices - 1));
  }
  if (!rest.empty()) refuse_token(token);
  return action;
}

void parse_cell(std::string_view cell, std::vector<Action>& row) {
  cell = trim(cell);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
    cell = trim(cell.substr(1, cell.size() - 2));
  if (cell.starts_with('(')) {
    parse_pair(cell, row);
  } else {
    row.push_back(parse_token(cell));
  }
}

std::string to_csv(const Schedule& schedule) {
  const bool with_slice = is_sliced(schedule);
  std::string text;
  for (const std::vector<Action>& row : schedule.devices) {
    if (row.size() == 1 && row.front().kind == Kind::Idle) text += kLoneIdleCell;
    for (std::size_t i = 0; i < row.size();) {
      if (i > 0) text += ',';
      i += append_cell(text, row, i, with_slice);
    }
    text += '\n';
  }
  return text;
}

void infer_sizes(Schedule& schedule) {
  for (const std::vector<Action>& row : schedule.devices) {
    for (const Action& action : row) {
      if (action.kind == Kind::Idle) continue;
      schedule.stages = std::max(schedule.stages, action.key.stage + 1);
      if (!is_compute(action.kind)) continue;
      if (action.key.micro_batch >= schedule.micro_batches())
        schedule.slices.resize(action.key.micro_batch + 1, 1);
      schedule.slices[action.key.micro_batch] =
          std::max(schedule.slices[action.key.micro_batch], action.key.slice + 1);
    }
  }
}

Schedule parse_csv(std::string_view text, std::string_view origin) {
  Schedule schedule{.name = std::string(origin)};
  text = without_byte_order_mark(text);
  if (text.starts_with(kProgramsHead))
    throw InputError(std::string(origin) +
                     ": is a program, not a schedule; penstock check --program reads it");
  for (std::string_view rest = text; !rest.empty();) {
    if (schedule.device_count() == kMostDevices) {
      throw InputError(std::string(origin) + ": more than " + std::to_string(kMostDevices) +
                       " rows; a row is a device");
    }
    allow_interruption();
    const std::size_t end = rest.find('\n');
    schedule.devices.push_back(parse_row(rest.substr(0, end), schedule.devices.size() + 1, origin));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  infer_sizes(schedule);
  if (schedule.stages == 0) {
    throw InputError(std::string(origin) +
                     ": holds no action; expected a row of cells for each device, as in 0F0,0B0");
  }
  return schedule;
}

std::string to_json(const Schedule& schedule) {
  const bool with_slice = is_sliced(schedule);
  std::string text = "{\"schedule\":" + json_quote(schedule.name) +
                     ",\"stages\":" + std::to_string(schedule.stages) + ",\"slices\":[";
  for (std::size_t j = 0; j < schedule.slices.size(); ++j) {
    text += (j > 0 ? "," : "") + std::to_string(schedule.slices[j]);
  }
  text += "],\"devices\":[";
  for (std::size_t device = 0; device < schedule.devices.size(); ++device) {
    const std::vector<Action>& row = schedule.devices[device];
    text += device > 0 ? ",\n[" : "\n[";
    for (std::size_t i = 0; i < row.size();) {
      if (i > 0) text += ',';
      text += '"' + cell_at(row, i, with_slice) + '"';
    }
    text += ']';
  }
  return text + "]}";
}

}  // namespace penstock::schedule
