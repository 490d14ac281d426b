// SPDX-License-Identifier: Apache-2.0
#include "plan/published/checked.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/quantile.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

// Errors within a source or configuration correlate: 10 and 90 % quantiles of the other runs cover fewer than
// eight of ten. These cover eight of ten published runs (coverage_of, printed by `plan --fit`).
constexpr std::size_t kNearest = 160;
constexpr double kLow = 0.06, kHigh = 0.94;

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

// Dissimilarity of two runs: the family weighs most, then the axes of the mesh in use, then sizes.
double distance(const CheckedRun& a, const CheckedRun& b) {
  const auto differ = [](int x, int y) { return (x > 1) != (y > 1) ? 1.0 : 0.0; };
  double sum = a.family != b.family ? 3 : 0;
  sum += differ(a.mesh.tensor, b.mesh.tensor) + differ(a.mesh.context, b.mesh.context) +
         differ(a.mesh.expert, b.mesh.expert) + differ(a.mesh.pipeline, b.mesh.pipeline);
  sum += a.shards_weights != b.shards_weights ? 1 : 0;
  sum += 0.3 * octaves(static_cast<double>(a.mesh.world()), static_cast<double>(b.mesh.world()));
  return sum + 0.3 * octaves(static_cast<double>(a.seq_len), static_cast<double>(b.seq_len));
}

using Chosen = std::function<bool(const CheckedRun&)>;

// The interval from the chosen runs, by one of the two errors.
std::optional<Interval> interval_from(const CheckedRun& asked, const std::vector<CheckedRun>& runs,
                                      double CheckedRun::*error, const Chosen& chosen) {
  std::vector<std::pair<double, double>> near;  // distance, factor of the predicted step
  for (const CheckedRun& run : runs) {
    if (chosen(run)) near.emplace_back(distance(asked, run), 1 / (1 + run.*error));
  }
  if (near.empty()) return std::nullopt;
  std::ranges::sort(near);
  std::size_t count = std::min(near.size(), kNearest);
  while (count < near.size() && near[count].first == near[count - 1].first) ++count;  // ties with the last
  near.resize(count);
  std::vector<double> factors;
  for (const auto& [unlike, factor] : near) factors.push_back(factor);
  std::ranges::sort(factors);
  return Interval{at_quantile(factors, kLow), at_quantile(factors, kHigh), factors.size(),
                  error == &CheckedRun::unseen_configuration};
}

bool holds(const std::optional<Interval>& interval, double error) {
  const double factor = 1 / (1 + error);
  return interval && factor >= interval->low && factor <= interval->high;
}

// A few runs are not enough to know an engine.
bool knows_engine(const CheckedRun& asked, const std::vector<CheckedRun>& runs) {
  constexpr std::ptrdiff_t kEnough = 20;
  return std::ranges::count(runs, asked.engine, &CheckedRun::engine) >= kEnough;
}

template <class Size>
void tell_above(Words& words, const char* what, const CheckedRun& asked, const std::vector<CheckedRun>& runs,
                const std::string& of_engine, Size size) {
  std::int64_t greatest = 0;
  for (const CheckedRun& run : runs) greatest = std::max(greatest, size(run));
  if (size(asked) > greatest)
    words.push_back("no published run" + of_engine + " has more " + what + " than " +
                    std::to_string(greatest) + " (here " + std::to_string(size(asked)) + ")");
}

}  // namespace

std::string family_name(const Workload& workload) {
  constexpr Tokens kLongContext = 32768;
  if (workload.seq_len >= kLongContext) return "long context";
  return workload.model.shape.experts > 1 ? "experts" : "dense";
}

std::vector<CheckedRun> read_checked(const Table& table) {
  std::vector<CheckedRun> runs;
  for (std::size_t row = 0; row < table.size(); ++row) {
    CheckedRun run;
    run.engine = table.text(row, "engine");
    run.family = table.text(row, "family");
    run.source = table.text(row, "source");
    run.configuration = table.text(row, "configuration");
    const auto size = [&](const char* column) {
      return static_cast<int>(std::min<std::int64_t>(table.integer(row, column), 1 << 20));
    };
    run.mesh = {size("tp"), size("cp"), size("ep"), size("dp"), size("pp")};
    run.shards_weights = table.integer(row, "shards_weights", 0) != 0;
    run.seq_len = table.integer(row, "seq_len");
    run.unseen_configuration = table.number(row, "unseen_configuration", -0.99);
    run.unseen_source = table.number(row, "unseen_source", -0.99);
    runs.push_back(std::move(run));
  }
  return runs;
}

CheckedRun as_checked(const Workload& workload, const Layout& layout, const std::string& engine) {
  CheckedRun run;
  run.engine = engine;
  run.family = family_name(workload);
  run.mesh = layout.mesh;
  run.shards_weights = layout.sharded.on;
  run.seq_len = workload.seq_len;
  return run;
}

std::optional<Interval> interval_of(const CheckedRun& asked, const std::vector<CheckedRun>& runs) {
  if (knows_engine(asked, runs)) {
    return interval_from(asked, runs, &CheckedRun::unseen_configuration,
                         [&](const CheckedRun& run) { return run.engine == asked.engine; });
  }
  return interval_from(asked, runs, &CheckedRun::unseen_source, [](const CheckedRun&) { return true; });
}

Words outside_of(const CheckedRun& asked, const std::vector<CheckedRun>& all) {
  Words words;
  if (all.empty()) return words;
  std::vector<CheckedRun> runs = all;
  std::string of_engine;
  if (knows_engine(asked, all)) {
    std::erase_if(runs, [&](const CheckedRun& run) { return run.engine != asked.engine; });
    of_engine = " of " + asked.engine;
  }
  if (std::ranges::none_of(runs, [&](const CheckedRun& run) { return run.family == asked.family; }))
    words.push_back("no published run" + of_engine + " is of the family \"" + asked.family + "\"");
  tell_above(words, "tensor ranks", asked, runs, of_engine,
             [](const CheckedRun& run) { return std::int64_t{run.mesh.tensor}; });
  tell_above(words, "context ranks", asked, runs, of_engine,
             [](const CheckedRun& run) { return std::int64_t{run.mesh.context}; });
  tell_above(words, "expert ranks", asked, runs, of_engine,
             [](const CheckedRun& run) { return std::int64_t{run.mesh.expert}; });
  tell_above(words, "pipeline ranks", asked, runs, of_engine,
             [](const CheckedRun& run) { return std::int64_t{run.mesh.pipeline}; });
  tell_above(words, "GPUs", asked, runs, of_engine, [](const CheckedRun& run) { return run.mesh.world(); });
  tell_above(words, "tokens a sequence", asked, runs, of_engine,
             [](const CheckedRun& run) { return run.seq_len; });
  if (!knows_engine(asked, all))
    words.push_back("few or no runs of the engine " + asked.engine +
                    " are published: the interval is that of unknown engines");
  return words;
}

Coverage coverage_of(const std::vector<CheckedRun>& runs) {
  Coverage coverage;
  for (const CheckedRun& left_out : runs) {
    coverage.configurations += holds(interval_from(left_out, runs, &CheckedRun::unseen_configuration,
                                                   [&](const CheckedRun& run) {
                                                     return run.engine == left_out.engine &&
                                                            run.configuration != left_out.configuration;
                                                   }),
                                     left_out.unseen_configuration);
    coverage.sources +=
        holds(interval_from(left_out, runs, &CheckedRun::unseen_source,
                            [&](const CheckedRun& run) { return run.source != left_out.source; }),
              left_out.unseen_source);
  }
  const double count = std::max<double>(1, static_cast<double>(runs.size()));
  return {coverage.configurations / count, coverage.sources / count};
}

}  // namespace penstock::plan
