// SPDX-License-Identifier: Apache-2.0
#include "plan/published/score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/quantile.h"
#include "base/text.h"
#include "plan/published/score_tables.h"

namespace penstock::plan {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = 0.5 * static_cast<double>(first + last);
    first = last + 1;
  }
  return ranks;
}

}  // namespace

Score score(const Table& table, const KnownMachines& known) {
  if (is_throughput(table)) return score_throughput(table, known);
  if (table.has("kv_cache_GiB")) return score_slimpipe_planner(table);
  if (table.has("peak_bytes")) return score_kwai_memory(table);
  if (table.has("tokens_per_second")) return score_kwai_throughput(table, known);
  if (table.has("iteration_s")) return score_calculon(table, known);
  if (table.has("iteration_ms") && table.has("params_billion")) return score_vtrain(table, known);
  throw InputError(
      table.origin() +
      ": unknown header; expected the columns of a file in bench/reference, such as "
      "peak_bytes, kv_cache_GiB, tokens_per_second, iteration_s, params_billion with iteration_ms, or source "
      "with "
      "step_s");
}

ErrorStatistics statistics_of(const Score& score) {
  std::vector<double> errors;
  for (const ScoredFigure& figure : score.figures) {
    errors.push_back(
        std::abs(score.error_kind == ErrorKind::Relative ? figure.relative_error() : figure.error()));
  }
  return statistics_of(std::move(errors));
}

ErrorStatistics statistics_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  return {errors.size(), sum / static_cast<double>(errors.size()), at_quantile(errors, 0.5),
          at_quantile(errors, 0.9), errors.back()};
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  PENSTOCK_CHECK(a.size() == b.size() && a.size() > 1, "a correlation needs two lists of one length");
  const auto x = ranks_of(a);
  const auto y = ranks_of(b);
  const double mean = 0.5 * static_cast<double>(x.size() - 1);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0.0;
}

std::map<std::string, double> rank_correlations(const Score& score) {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> figures;
  for (const ScoredFigure& figure : score.figures) {
    figures[figure.model].first.push_back(figure.predicted);
    figures[figure.model].second.push_back(figure.published);
  }
  std::map<std::string, double> correlations;
  for (const auto& [model, lists] : figures) {
    if (lists.first.size() >= 3) correlations[model] = rank_correlation(lists.first, lists.second);
  }
  return correlations;
}

namespace {

struct Speeds {
  double predicted, published;
};

void rank(std::vector<Speeds> speeds, Ranking& ranking) {
  constexpr double kDifference = 1.05;
  constexpr std::size_t kFirst = 3;
  for (std::size_t a = 0; a < speeds.size(); ++a) {
    for (std::size_t b = 0; b < speeds.size(); ++b) {
      if (speeds[a].published < kDifference * speeds[b].published) continue;
      ++ranking.pairs;
      ranking.right += speeds[a].predicted > speeds[b].predicted;
    }
  }
  if (speeds.size() <= kFirst) return;
  ++ranking.groups;
  const auto best = *std::ranges::max_element(speeds, {}, &Speeds::published);
  const auto before =
      std::ranges::count_if(speeds, [&](const Speeds& row) { return row.predicted > best.predicted; });
  ranking.in_three += before < static_cast<std::ptrdiff_t>(kFirst);
}

}  // namespace

Ranking ranking_of(const Score& score) {
  std::map<std::string, std::vector<Speeds>> groups;
  for (const ScoredFigure& figure : score.figures) {
    if (figure.tokens > 0)
      groups[figure.group].push_back({figure.tokens / figure.predicted, figure.tokens / figure.published});
  }
  Ranking ranking;
  for (const auto& [name, speeds] : groups) rank(speeds, ranking);
  return ranking;
}

namespace {

template <class Named>
std::string instead_of_keys(const std::string& name, const std::map<std::string, Named>& known) {
  std::vector<std::string_view> names;
  for (const auto& [key, unused] : known) names.push_back(key);
  return instead_of(name, names);
}

}  // namespace

const sim::Hardware& find_hardware(const HardwareSet& hardware, const std::string& name) {
  const auto found = hardware.find(name);
  if (found == hardware.end())
    throw InputError("no hardware file describes \"" + printable(name) + "\"" +
                     instead_of_keys(name, hardware));
  return found->second;
}

const sim::Engine& find_engine(const EngineSet& engines, const std::string& name) {
  const auto found = engines.find(name);
  if (found == engines.end())
    throw InputError("no engine file describes \"" + printable(name) + "\"" + instead_of_keys(name, engines));
  return found->second.engine;
}

}  // namespace penstock::plan
