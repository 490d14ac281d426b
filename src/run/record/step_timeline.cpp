// SPDX-License-Identifier: Apache-2.0
#include "run/record/step_timeline.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::run {
namespace {

using Json = nlohmann::json;

std::string place_of(std::string_view origin, std::int64_t step, std::size_t rank) {
  return std::string(origin) + ": step " + std::to_string(step) + ", rank " + std::to_string(rank);
}

schedule::Event parse_event(const Json& pair, std::uint32_t op, const std::string& place) {
  const bool numbers = pair.is_array() && (pair.size() == 2 || pair.size() == 3) &&
                       std::ranges::all_of(pair, [](const Json& number) { return number.is_number(); });
  if (!numbers) throw InputError(place + ": op " + std::to_string(op) + " has no start and end");
  const schedule::Event event{.start = pair[0].get<double>(), .end = pair[1].get<double>()};
  if (event.start < 0) throw InputError(place + ": op " + std::to_string(op) + " starts before its step");
  if (!std::isfinite(event.start) || !std::isfinite(event.end) || event.end < event.start) {
    throw InputError(place + ": op " + std::to_string(op) + " ends before it starts");
  }
  return event;
}

Seconds parse_processor_seconds(const Json& entry, const std::string& place) {
  if (entry.size() < 3) return 0;
  const auto seconds = entry[2].get<double>();
  if (!std::isfinite(seconds) || seconds < 0)
    throw InputError(place + ": processor seconds of an op are not a time");
  return seconds;
}

std::vector<schedule::Event> parse_rank(const Json& pairs, std::size_t ops, const std::string& place) {
  const std::size_t found = pairs.is_array() ? pairs.size() : 0;
  if (found != ops) {
    throw InputError(place + ": has " + std::to_string(found) + " of its " + std::to_string(ops) + " ops");
  }
  std::vector<schedule::Event> events;
  for (std::uint32_t op = 0; op < ops; ++op) events.push_back(parse_event(pairs[op], op, place));
  return events;
}

schedule::ExchangeSpan parse_span(const Json& entry, std::size_t exchanges, const std::string& place) {
  const bool numbers = entry.is_array() && entry.size() == 5 && entry[0].is_number_unsigned() &&
                       std::ranges::all_of(entry, [](const Json& number) { return number.is_number(); });
  if (!numbers || entry[0].get<std::uint64_t>() >= exchanges)
    throw InputError(place +
                     ": exchange is not a list of [exchange, start, end, waiting, processor seconds]");
  const schedule::ExchangeSpan span{.exchange = entry[0].get<std::uint32_t>(),
                                    .start = entry[1].get<double>(),
                                    .end = entry[2].get<double>(),
                                    .waiting = entry[3].get<double>() != 0,
                                    .processor = entry[4].get<double>()};
  const bool sound = std::isfinite(span.start) && std::isfinite(span.end) && span.end >= span.start &&
                     std::isfinite(span.processor) && span.processor >= 0;
  if (!sound) throw InputError(place + ": exchange ends before it starts, or has an invalid time");
  return span;
}

// Each device's spans, ordered by start.
std::vector<std::vector<schedule::ExchangeSpan>> parse_exchange(const Json& devices,
                                                                const schedule::Program& program,
                                                                std::string_view origin, std::int64_t step) {
  std::vector<std::vector<schedule::ExchangeSpan>> exchange;
  if (program.exchanges.empty()) return exchange;
  for (std::size_t rank = 0; rank < program.devices.size(); ++rank) {
    const std::string place = place_of(origin, step, rank);
    const Json& entries = devices.is_array() && rank < devices.size() ? devices[rank] : Json();
    if (!entries.is_array()) throw InputError(place + ": its exchange is missing");
    std::vector<schedule::ExchangeSpan>& spans = exchange.emplace_back();
    for (const Json& entry : entries) spans.push_back(parse_span(entry, program.exchanges.size(), place));
    if (!std::ranges::is_sorted(spans, {}, &schedule::ExchangeSpan::start))
      throw InputError(place + ": its exchange is not in order of time");
  }
  return exchange;
}

OpMemory parse_memory(const Json& numbers, const std::string& place) {
  OpMemory memory;
  const bool whole =
      numbers.is_array() && numbers.size() == memory.live.size() + 1 &&
      std::ranges::all_of(numbers, [](const Json& entry) { return entry.is_number_integer(); });
  if (!whole) throw InputError(place + ": memory is not a list of a peak and the bytes of each category");
  memory.peak = numbers[0].get<Bytes>();
  for (std::size_t i = 0; i < memory.live.size(); ++i) memory.live[i] = numbers[i + 1].get<Bytes>();
  return memory;
}

std::vector<OpMemory> parse_memories(const Json& entries, const schedule::DeviceProgram& list,
                                     const std::string& place) {
  const auto wanted = std::ranges::count_if(
      list.ops, [](const schedule::Op& op) { return schedule::lane_of(op.kind) == schedule::Lane::Compute; });
  if (!entries.is_array() || static_cast<std::ptrdiff_t>(entries.size()) != wanted) {
    throw InputError(place + ": memory is not given for every compute op");
  }
  std::vector<OpMemory> memory;
  for (const Json& entry : entries) memory.push_back(parse_memory(entry, place));
  return memory;
}

// Events of every rank; empty if the step has none.
std::vector<std::vector<schedule::Event>> parse_ranks(const Json& lists, const schedule::Program& program,
                                                      std::string_view origin, std::int64_t step) {
  std::vector<std::vector<schedule::Event>> ranks;
  if (lists.is_null()) return ranks;
  const std::size_t devices = program.devices.size();
  if (!lists.is_array() || lists.empty() || lists.size() % devices != 0) {
    throw InputError(std::string(origin) + ": step " + std::to_string(step) +
                     ": \"ranks\" is not a list with as many ranks for each of " + std::to_string(devices) +
                     " devices");
  }
  const std::size_t per_device = lists.size() / devices;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    ranks.push_back(
        parse_rank(lists[rank], program.devices[rank / per_device].ops.size(), place_of(origin, step, rank)));
  }
  return ranks;
}

StepTimeline parse_step(const Json& entry, const schedule::Program& program, std::string_view origin) {
  if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer()) {
    throw InputError(std::string(origin) + ": a step has no number \"step\"");
  }
  StepTimeline step{.step = entry["step"].get<std::int64_t>(), .timeline = {}};
  const Json devices = entry.value("devices", Json::array());
  if (devices.is_array() && devices.size() > program.devices.size())
    throw InputError(std::string(origin) + ": step " + std::to_string(step.step) + ": has " +
                     std::to_string(devices.size()) + " devices; the program has " +
                     std::to_string(program.devices.size()));
  for (std::size_t rank = 0; rank < program.devices.size(); ++rank) {
    const Json& pairs = devices.is_array() && rank < devices.size() ? devices[rank] : Json();
    const std::string place = place_of(origin, step.step, rank);
    step.timeline.devices.push_back(parse_rank(pairs, program.devices[rank].ops.size(), place));
    std::vector<Seconds>& seconds = step.processor_seconds.emplace_back();
    for (const Json& entry : pairs) seconds.push_back(parse_processor_seconds(entry, place));
  }
  step.timeline.exchanges = parse_exchange(entry.value("exchange", Json()), program, origin, step.step);
  step.ranks = parse_ranks(entry.value("ranks", Json()), program, origin, step.step);
  if (!entry.contains("memory")) return step;
  const Json& memory = entry["memory"];
  for (std::size_t rank = 0; rank < program.devices.size(); ++rank) {
    const Json& entries = memory.is_array() && rank < memory.size() ? memory[rank] : Json();
    step.memory.push_back(parse_memories(entries, program.devices[rank], place_of(origin, step.step, rank)));
  }
  return step;
}

// One list per device or rank, with entries printed by `numbers`; empty text without lists.
template <class Entry, class Numbers>
std::string lists_json(const char* key, const std::vector<std::vector<Entry>>& lists, Numbers&& numbers) {
  if (lists.empty()) return "";
  std::string text = std::string(", \"") + key + "\": [";
  for (const auto& list : lists) {
    text += &list == lists.data() ? "\n[" : ",\n[";
    for (const Entry& entry : list) text += (&entry == list.data() ? "[" : ",[") + numbers(entry) + "]";
    text += "]";
  }
  return text + "]";
}

std::string numbers_of_span(const schedule::ExchangeSpan& span) {
  return std::to_string(span.exchange) + "," + exact_number(span.start) + "," + exact_number(span.end) +
         (span.waiting ? ",1," : ",0,") + exact_number(span.processor);
}

std::string numbers_of_memory(const OpMemory& op) {
  std::string text = std::to_string(op.peak);
  for (const Bytes live : op.live) text += "," + std::to_string(live);
  return text;
}

std::string numbers_of_event(const schedule::Event& event) {
  return exact_number(event.start) + "," + exact_number(event.end);
}

}  // namespace

std::string to_json(const std::vector<StepTimeline>& steps) {
  std::string text = "{\"steps\": [";
  for (const StepTimeline& step : steps) {
    text += (&step == steps.data() ? "\n" : ",\n") + std::string("{\"step\": ") + std::to_string(step.step) +
            ", \"devices\": [";
    for (std::size_t rank = 0; rank < step.timeline.devices.size(); ++rank) {
      text += rank ? ",\n[" : "\n[";
      const std::vector<schedule::Event>& events = step.timeline.devices[rank];
      for (std::size_t op = 0; op < events.size(); ++op) {
        if (text.back() != '[') text += ",";
        text += "[" + numbers_of_event(events[op]);
        const bool measured = rank < step.processor_seconds.size() && step.processor_seconds[rank][op] > 0;
        if (measured) text += "," + exact_number(step.processor_seconds[rank][op]);
        text += "]";
      }
      text += "]";
    }
    text += "]" + lists_json("exchange", step.timeline.exchanges, numbers_of_span) +
            lists_json("memory", step.memory, numbers_of_memory) +
            lists_json("ranks", step.ranks, numbers_of_event) + "}";
  }
  return text + "]}\n";
}

std::vector<StepTimeline> parse_timelines(std::string_view json, const schedule::Program& program,
                                          std::string_view origin) {
  const Json document = files::parse_or_discard(json);
  if (!document.is_object() || !document.contains("steps") || !document["steps"].is_array()) {
    throw InputError(std::string(origin) + ": is not a timeline; expected {\"steps\": [...]}");
  }
  std::vector<StepTimeline> steps;
  for (const Json& entry : document["steps"]) steps.push_back(parse_step(entry, program, origin));
  if (steps.empty()) throw InputError(std::string(origin) + ": holds no step");
  return steps;
}

}  // namespace penstock::run
