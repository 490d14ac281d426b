// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/rank_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;

RankTimes times_of(const Json& object, std::string_view origin) {
  const auto told = object.find("rank_times");
  if (told == object.end()) return {};
  std::vector<double> times;
  for (const Json& time : *told) {
    const bool good = time.is_number() && std::isfinite(time.get<double>()) && time.get<double>() > 0;
    if (!good)
      throw InputError(std::string(origin) + ": \"rank_times\": " + printable(time.dump(), 50) +
                       " is not a time");
    times.push_back(time.get<double>());
  }
  return times;
}

}  // namespace

RankTimes times_in_metrics(std::string_view metrics, std::string_view origin) {
  std::vector<double> sums;
  int comparisons = 0;
  for (const std::string_view line : split(metrics, '\n')) {
    const Json values = files::parse_or_discard<Json>(line);
    if (!values.is_object()) continue;
    const RankTimes times = times_of(values, origin);
    const bool another = values.contains("start") || (times && times->size() != sums.size());
    if (another) {
      sums.clear();
      comparisons = 0;
    }
    if (!times) continue;
    sums.resize(times->size());
    std::ranges::transform(sums, *times, sums.begin(), std::plus());
    ++comparisons;
  }
  if (comparisons == 0) return {};
  for (double& time : sums) time /= comparisons;
  return sums;
}

RankTimes times_in_summary(std::string_view summary, std::string_view origin) {
  const Json object = files::parse_or_discard<Json>(summary);
  if (!object.is_object()) throw InputError(std::string(origin) + ": is not a run's summary");
  return times_of(object, origin);
}

}  // namespace penstock::cli
