// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include "base/columns.h"
#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "report/plot.h"
#include "run/options.h"
#include "run/replicas.h"
#include "schedule/generators/generator.h"

namespace penstock::cli {
namespace {

// Short names of common settings, with their run-file key and flag.
struct SweptKey {
  std::string_view name;
  std::string_view option;
  int ScheduleFlags::*flag;  // null: slices
};
constexpr std::array<SweptKey, 4> kKeys{{{"devices", "parallel.pp", &ScheduleFlags::devices},
                                         {"micro_batches", "train.batch", &ScheduleFlags::micro_batches},
                                         {"slices", "schedule.slices", nullptr},
                                         {"chunks", "schedule.chunks", &ScheduleFlags::chunks}}};

const SweptKey* find_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &SweptKey::name);
  return found == kKeys.end() ? nullptr : &*found;
}

int parse_count(const std::string& value, const std::string& setting) {
  const auto count = parse_integer(value);
  if (!count || *count < 1 || *count > std::numeric_limits<int>::max()) {
    throw InputError("--sweep " + setting + ": \"" + printable(value) +
                     "\" is not a whole number from 1 to " + std::to_string(std::numeric_limits<int>::max()));
  }
  return static_cast<int>(*count);
}

SimulateFlags with_count(SimulateFlags flags, const SweptKey& key, int count) {
  if (flags.costs.empty() && flags.schedule.slices.size() > 1)
    throw InputError("-n lists " + std::to_string(flags.schedule.slices.size()) +
                     " micro-batches; --sweep, which divides the times of one among its slices, takes one "
                     "number for all");
  if (key.flag) {
    flags.schedule.*key.flag = count;
  } else {
    flags.schedule.slices = {count};
  }
  if (!flags.costs.empty()) return flags;  // a table has times per slice and stage
  const int slices = flags.schedule.slices.empty() ? 1 : flags.schedule.slices.front();
  const int chunks = flags.schedule.chunks > 0 ? flags.schedule.chunks
                                               : schedule::find_generator(flags.schedule.name).default_chunks;
  const double parts = static_cast<double>(slices) * chunks;
  for (Seconds* time : {&flags.times.forward, &flags.times.backward, &flags.times.input, &flags.times.weight,
                        &flags.times.copy}) {
    *time /= parts;
  }
  flags.times.visit /= slices;  // chunks share a visit
  flags.schedule.record = std::llround(static_cast<double>(sim::kUnitRecord) / parts);
  return flags;
}

// Refuses unreadable values. Values that are impossible for the run become rows of the table.
void check_value(const SimulateFlags& flags, std::vector<std::string> overrides, const std::string& key,
                 const std::string& value, const std::string& setting) {
  const SweptKey* known = find_key(key);
  if (value.empty()) throw InputError("--sweep " + setting + ": a value is missing");
  if (known) {
    parse_count(value, setting);
  } else if (flags.schedule.file.ends_with(".toml")) {
    overrides.push_back("--" + key + "=" + value);
    on_behalf_of("--sweep " + setting, [&] { return run::read_options(flags.schedule.file, overrides); });
  }
}

// Converts micro-batches of one pipeline to the run file's count, the sequences of all pipelines.
std::string value_in_file(const SimulateFlags& flags, const std::vector<std::string>& overrides,
                          const SweptKey* known, const std::string& value, const std::string& setting) {
  if (!known || known->name != "micro_batches") return value;
  const run::Options options = run::read_fitted_options(flags.schedule.file, overrides);
  const std::int64_t batch = product_within(
      run::kMostSequences, {parse_count(value, setting), options.train.micro_batch, options.parallel.dp});
  if (batch > run::kMostSequences)
    throw InputError("--sweep " + setting + ": " + value + " micro-batches of " +
                     std::to_string(options.train.micro_batch) + " sequences on " +
                     std::to_string(options.parallel.dp) + " replicas are more than " +
                     std::to_string(run::kMostSequences) + " sequences");
  return std::to_string(batch);
}

Simulated simulate_value(const SimulateFlags& flags, std::vector<std::string> overrides,
                         const std::string& key, const std::string& value, const std::string& setting) {
  const SweptKey* known = find_key(key);
  if (flags.schedule.name.empty()) {
    if (!flags.schedule.file.ends_with(".toml")) {
      throw InputError("--sweep " + setting + ": needs --schedule or a run file (TOML), not \"" +
                       printable(flags.schedule.file) + "\"");
    }
    const std::string counted = value_in_file(flags, overrides, known, value, setting);
    overrides.push_back("--" + (known ? std::string(known->option) : key) + "=" + counted);
    return simulate_source(flags, overrides);
  }
  if (!known) {
    std::vector<std::string_view> names;
    for (const SweptKey& each : kKeys) names.push_back(each.name);
    throw InputError("--sweep " + setting + ": \"" + printable(key) + "\" cannot be swept" +
                     instead_of(key, names));
  }
  return simulate_source(with_count(flags, *known, parse_count(value, setting)), overrides);
}

SweepRow sweep_row_of(const std::string& value, const Simulated& simulated) {
  SweepRow row{.value = value,
               .makespan = simulated.result.makespan,
               .bubble_fraction = simulated.result.bubble_fraction,
               .span_bubble_fraction = simulated.result.span_bubble_fraction,
               .notes = simulated.notes};
  for (const sim::DeviceResult& device : simulated.result.devices) {
    row.peak_in_flight = std::max(row.peak_in_flight, device.in_flight.peak);
    row.peak_bytes = std::max(row.peak_bytes, device.memory.peak);
  }
  const schedule::Program& program = simulated.program;
  const double chunks = static_cast<double>(program.stages) / program.device_count();
  row.micro_batches = row.peak_in_flight / (chunks * std::ranges::max(program.slices));
  return row;
}

// Commas inside a list or a text are the value's own.
std::vector<std::string_view> split_values(std::string_view text) {
  std::vector<std::string_view> values;
  std::size_t begin = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    depth += (text[i] == '[') - (text[i] == ']');
    if (text[i] != ',' || depth > 0) continue;
    values.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  values.push_back(text.substr(begin));
  return values;
}

bool holds(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Sweep sweep(const SimulateFlags& flags, const std::vector<std::string>& overrides,
            const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == setting.size()) {
    throw InputError("--sweep \"" + printable(setting) +
                     "\" is not a sweep; expected KEY=V1,V2,... as in slices=1,2,4,8");
  }
  Sweep result{.key = setting.substr(0, equals)};
  std::exception_ptr last_refusal;
  const auto parts = split_values(std::string_view(setting).substr(equals + 1));
  for (const std::string_view part : parts)
    check_value(flags, overrides, result.key, std::string(trim(part)), setting);
  for (const std::string_view part : parts) {
    const std::string value(trim(part));
    const auto refuse = [&](const std::exception& refusal) {
      last_refusal = std::current_exception();
      result.rows.push_back({.value = value, .refusal = refusal.what()});
    };
    try {
      const Simulated simulated = simulate_value(flags, overrides, result.key, value, setting);
      const std::string& name = simulated.program.name;
      if (result.name.empty()) result.speeds = simulated.speeds;
      result.name = result.name.empty() || result.name == name ? name : "several schedules";
      result.rows.push_back(sweep_row_of(value, simulated));
    } catch (const InputError& refusal) {
      refuse(refusal);
    } catch (const NoAnswer& refusal) {
      refuse(refusal);
    }
  }
  if (result.name.empty()) std::rethrow_exception(last_refusal);
  return result;
}

Words notes_of(const Sweep& sweep) {
  Words notes;
  for (const SweepRow& row : sweep.rows) {
    for (const std::string& note : row.notes) {
      const bool shared = std::ranges::all_of(sweep.rows, [&](const SweepRow& other) {
        return !other.refusal.empty() || holds(other.notes, note);
      });
      const std::string text = shared ? note : sweep.key + " = " + row.value + ": " + note;
      if (!holds(notes, text)) notes.push_back(text);
    }
  }
  return notes;
}

std::string to_table(const Sweep& sweep) {
  Rows rows{{sweep.key, "makespan", "bubble of the step", "of the spans", "records in flight",
             "in flight, in micro-batches", "peak saved"}};
  std::string refusals;
  for (const SweepRow& row : sweep.rows) {
    if (!row.refusal.empty()) {
      refusals += sweep.key + " = " + row.value + " is not possible: " + row.refusal + "\n";
      continue;
    }
    rows.push_back({row.value, print_seconds(row.makespan), percent(row.bubble_fraction),
                    percent(row.span_bubble_fraction), std::to_string(row.peak_in_flight),
                    number(row.micro_batches, 2), print_bytes(row.peak_bytes)});
  }
  return sweep.name + "\n" + columns(rows) + refusals;
}

std::string to_json(const Sweep& sweep) {
  std::string json =
      "{\"key\":" + json_quote(sweep.key) + ",\"schedule\":" + json_quote(sweep.name) + ",\"rows\":[";
  for (const SweepRow& row : sweep.rows) {
    if (json.back() != '[') json += ",";
    json += "\n{\"value\":" + json_quote(row.value);
    if (!row.refusal.empty()) {
      json += ",\"refused\":" + json_quote(row.refusal) + "}";
      continue;
    }
    json += ",\"makespan_s\":" + exact_number(row.makespan) +
            ",\"bubble_fraction\":" + exact_number(row.bubble_fraction) +
            ",\"span_bubble_fraction\":" + exact_number(row.span_bubble_fraction) +
            ",\"peak_in_flight\":" + std::to_string(row.peak_in_flight) +
            ",\"peak_in_flight_micro_batches\":" + exact_number(row.micro_batches) +
            ",\"peak_bytes\":" + std::to_string(row.peak_bytes);
    if (!sweep.speeds.origin.empty()) json += ",\"notes\":" + json_quote_all(row.notes);
    json += "}";
  }
  json += "\n]";
  if (!sweep.speeds.origin.empty()) json += ",\"speeds\":" + to_json(sweep.speeds);
  return json + "}";
}

std::string to_svg(const Sweep& sweep) {
  report::Plot plot{
      .title = sweep.name + " over " + sweep.key, .axis = sweep.key, .positions = {}, .curves = {}};
  Seconds longest = 0;
  for (const SweepRow& row : sweep.rows) longest = std::max(longest, row.makespan);
  const auto [unit, scale] = longest < 1e-3 ? std::pair{"us", 1e6}
                             : longest < 1  ? std::pair{"ms", 1e3}
                                            : std::pair{"s", 1.0};
  report::Curve makespan{.name = "makespan", .unit = unit, .values = {}};
  report::Curve bytes{.name = "peak saved", .unit = "MiB", .values = {}};
  report::Curve records{.name = "peak in flight", .unit = "micro-batches", .values = {}};
  bool known_bytes = false;
  for (const SweepRow& row : sweep.rows) {
    const bool possible = row.refusal.empty();
    const auto or_gap = [&](double value) {
      return possible ? value : std::numeric_limits<double>::quiet_NaN();
    };
    plot.positions.push_back(row.value);
    makespan.values.push_back(or_gap(row.makespan * scale));
    bytes.values.push_back(or_gap(static_cast<double>(row.peak_bytes) / MiB));
    records.values.push_back(or_gap(row.micro_batches));
    known_bytes |= row.peak_bytes > 0;
  }
  plot.curves = {makespan, known_bytes ? bytes : records};
  return report::svg(plot);
}

}  // namespace penstock::cli
