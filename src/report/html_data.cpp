// SPDX-License-Identifier: Apache-2.0
#include "report/html_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"
#include "report/check_timeline.h"
#include "report/html_charts.h"
#include "report/html_json.h"
#include "report/html_program.h"
#include "report/palette.h"
#include "schedule/program_words.h"

namespace penstock::report {
namespace {

constexpr double kTicks = 1 << 22;  // per makespan; an op of 1/1000 of it has a resolution of 1/4000

template <class Range, class Piece>
std::string list(const Range& values, Piece piece) {
  JsonList pieces;
  for (const auto& value : values) pieces.add(piece(value));
  return pieces.text();
}

std::string texts(const std::vector<std::string>& values) {
  return list(values, [](const std::string& value) { return json_text(value); });
}

std::string numbers(std::span<const double> values) {
  return list(values, [](double value) { return exact_number(value); });
}

std::size_t ops_of(const Track& track) {
  std::size_t ops = 0;
  for (const auto& events : track.timeline.devices) ops += events.size();
  return ops;
}

std::vector<const Track*> tracks_of(const Run& run) {
  std::vector<const Track*> tracks;
  if (run.predicted) tracks.push_back(&*run.predicted);
  for (const Track& track : run.measured) tracks.push_back(&track);
  return tracks;
}

void check_rows(const Run& run) {
  const auto& devices = run.program.devices;
  PENSTOCK_CHECK(run.rows.empty() || run.rows.size() == devices.size(), "all rows have names or none");
  for (const RowGroups& groups : run.groups)
    PENSTOCK_CHECK(groups.group_of.size() == devices.size(), "every row has a group of each kind");
}

void check_track(const Run& run, const Track& track) {
  const auto& devices = run.program.devices;
  check_timeline(run.program, track.timeline);
  PENSTOCK_CHECK(track.memory.empty() || track.memory.size() == devices.size(),
                 "memory is of all devices or none");
  for (const IdleCause& cause : track.idle) {
    PENSTOCK_CHECK(cause.devices.size() == devices.size(), "idle time is of all devices");
  }
}

// Distributes the limits over the timelines of a report.
class Plan {
 public:
  Plan(const Report& report, const HtmlLimits& limits) : limits_(limits) {
    for (const Run& run : report.runs) {
      check_rows(run);
      auto tracks = tracks_of(run);
      const auto steps = tracks.begin() + (run.predicted ? 1 : 0);
      PENSTOCK_CHECK(run.opens_with < std::max<std::size_t>(run.measured.size(), 1),
                     "a page opens with a step");
      if (!run.measured.empty())
        std::rotate(steps, steps + static_cast<std::ptrdiff_t>(run.opens_with), tracks.end());
      for (const Track* track : tracks) {
        check_track(run, *track);
        choose(*track);
        for (const MemorySeries& memory : track->memory) curves_ += memory.categories.size();
      }
    }
  }

  bool is_detailed(const Track& track) const {
    return std::ranges::find(detailed_, &track) != detailed_.end();
  }
  std::size_t memory_points() const {
    return std::max<std::size_t>(limits_.memory_points / std::max(curves_, 1ul), 20);
  }
  std::size_t metric_points() const { return limits_.metric_points; }

  std::size_t slots() const {
    const std::size_t rows = std::max<std::size_t>(shared_devices_ * compute_kinds().size(), 1);
    return std::clamp<std::size_t>(limits_.share_cells / rows, 50, 2000);
  }

 private:
  void choose(const Track& track) {
    const std::size_t ops = ops_of(track);
    if (detailed_ops_ + ops <= limits_.detailed_ops) {
      detailed_ops_ += ops;
      detailed_.push_back(&track);
    } else {
      shared_devices_ += track.timeline.devices.size();
    }
  }

  HtmlLimits limits_;
  std::size_t detailed_ops_ = 0, shared_devices_ = 0, curves_ = 0;
  std::vector<const Track*> detailed_;
};

struct Work {
  std::string busy, counts;  // [device][compute kind]
};

Work work_json(const Run& run, const Track& track) {
  const auto kinds = compute_kinds();
  JsonList busy, counts;
  for (std::size_t d = 0; d < run.program.devices.size(); ++d) {
    std::vector<double> seconds(kinds.size(), 0.0), runs(kinds.size(), 0.0);
    for (std::size_t i = 0; i < track.timeline.devices[d].size(); ++i) {
      const schedule::Event& event = track.timeline.devices[d][i];
      const auto kind = std::ranges::find(kinds, run.program.devices[d].ops[i].kind);
      if (kind == kinds.end()) continue;
      seconds[kind - kinds.begin()] += event.end - event.start;
      runs[kind - kinds.begin()] += 1;
    }
    busy.add(numbers(seconds));
    counts.add(numbers(runs));
  }
  return {busy.text(), counts.text()};
}

std::string track_json(const Run& run, const Track& track, bool measured, const Plan& plan) {
  const Seconds makespan = track.timeline.makespan(), tick = makespan > 0 ? makespan / kTicks : 1.0;
  const Work work = work_json(run, track);
  JsonObject object;
  object.add("label", json_text(track.label)).add("measured", measured ? "true" : "false");
  object.add("makespan", exact_number(makespan)).add("tick", exact_number(tick));
  if (plan.is_detailed(track)) {
    object.add("events", events_json(run.program, track.timeline, tick));
  } else {
    object.add("slots", std::to_string(plan.slots()));
    object.add("shares", shares_json(run.program, track.timeline, plan.slots()));
  }
  object.add("busy", work.busy).add("counts", work.counts);
  object.add("memory", list(track.memory, [&](const MemorySeries& memory) {
               return memory_json(memory, tick, plan.memory_points());
             }));
  object.add("idle", list(track.idle, [](const IdleCause& cause) {
               return JsonObject()
                   .add("cause", json_text(cause.cause))
                   .add("devices", numbers(cause.devices))
                   .text();
             }));
  return object.text();
}

// Indices to keep: of more than `points` values, the minimum and maximum of each equal part, and the first
// and the last value, in order.
std::vector<std::size_t> kept_values(const std::vector<double>& values, std::size_t points) {
  std::vector<std::size_t> kept;
  const std::size_t parts = std::max<std::size_t>(points / 2, 2) - 1;
  const std::size_t size = values.size() <= points ? 1 : ceil_div(values.size(), parts);
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    const auto first = values.begin() + begin, last = values.begin() + std::min(begin + size, values.size());
    const auto [least, greatest] = std::minmax_element(
        first, last, [](double a, double b) { return std::isfinite(b) && (!std::isfinite(a) || a < b); });
    const auto low = static_cast<std::size_t>(least - values.begin());
    const auto high = static_cast<std::size_t>(greatest - values.begin());
    kept.push_back(std::min(low, high));
    if (low != high) kept.push_back(std::max(low, high));
  }
  if (kept.empty()) return kept;
  if (kept.front() > 0) kept.insert(kept.begin(), 0);
  if (kept.back() + 1 < values.size()) kept.push_back(values.size() - 1);
  return kept;
}

std::string metric_json(const Metric& metric, std::size_t points) {
  PENSTOCK_CHECK(metric.steps.size() == metric.values.size(), "a metric has one value per step");
  JsonList steps, values;
  for (const std::size_t i : kept_values(metric.values, points)) {
    steps.add(exact_number(metric.steps[i]));
    values.add(exact_number(metric.values[i]));
  }
  return JsonObject()
      .add("name", json_text(metric.name))
      .add("unit", json_text(metric.unit))
      .add("steps", steps.text())
      .add("values", values.text())
      .text();
}

std::string table_json(const Table& table) {
  return JsonObject()
      .add("title", json_text(table.title))
      .add("header", texts(table.header))
      .add("rows", list(table.rows, texts))
      .text();
}

std::string groups_json(const RowGroups& groups) {
  return JsonObject()
      .add("name", json_text(groups.name))
      .add("of", list(groups.group_of, [](int group) { return std::to_string(group); }))
      .text();
}

std::string run_json(const Run& run, const Plan& plan) {
  JsonList tracks;
  bool detailed = false;
  for (const Track* track : tracks_of(run)) {
    tracks.add(track_json(run, *track, !run.predicted || track != &*run.predicted, plan));
    detailed = detailed || plan.is_detailed(*track);
  }
  JsonObject object;
  object.add("name", json_text(run.name)).add("stages", std::to_string(run.program.stages));
  object.add("slices", list(run.program.slices, [](int n) { return std::to_string(n); }));
  object.add("configuration", json_text(run.configuration)).add("notes", texts(run.notes));
  object.add("tables", list(run.tables, table_json));
  object.add("metrics",
             list(run.metrics, [&](const Metric& m) { return metric_json(m, plan.metric_points()); }));
  object.add("heatMaps", list(run.heat_maps, heat_map_json));
  object.add("sliceNotes", list(run.slices, texts));
  object.add("devices", std::to_string(run.program.device_count()));
  object.add("rows", texts(run.rows)).add("groups", list(run.groups, groups_json));
  object.add("program", detailed ? program_json(run.program) : "null");
  object.add("opensWith", std::to_string(run.opens_with));
  return object.add("tracks", tracks.text()).text();
}

std::string kind_json(const schedule::OpWord& word) {
  constexpr std::string_view forms[] = {"none", "stage", "full"};
  return JsonObject()
      .add("word", json_text(word.text))
      .add("key", json_text(forms[static_cast<std::size_t>(word.key)]))
      .add("lane", std::to_string(static_cast<int>(lane_of(word.kind))))
      .add("colour", json_text(colour_of(word.kind).hex))
      .text();
}

std::string colours(std::span<const Colour> values) {
  return list(values, [](const Colour& colour) { return json_text(colour.hex); });
}

}  // namespace

std::string report_json(const Report& report, const HtmlLimits& limits) {
  const Plan plan(report, limits);
  return JsonObject()
      .add("title", json_text(report.title))
      .add("kinds", list(schedule::kOpWords, kind_json))
      .add("compute", list(compute_kinds(), [](auto kind) { return std::to_string(static_cast<int>(kind)); }))
      .add("series", colours(kSeriesColours))
      .add("more", colours(kMoreColours))
      .add("lines", colours(kLineColours))
      .add("runs", list(report.runs, [&](const Run& run) { return run_json(run, plan); }))
      .add("bars", list(report.bars, bar_chart_json))
      .add("points", list(report.points, point_chart_json))
      .text();
}

}  // namespace penstock::report
