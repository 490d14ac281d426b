// SPDX-License-Identifier: Apache-2.0
#include "schedule/patterns/rounds.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/refusal.h"
#include "base/whole.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

namespace {

std::vector<int> round_sizes(const Request& request, std::string_view schedule) {
  const int m = request.micro_batches(), p = request.devices;
  const int fewest_slices = *std::min_element(request.slices.begin(), request.slices.end());
  const Rounds rounds{ceil_div(p, fewest_slices)};
  if (!rounds.equal(m)) {
    throw InputError(std::string(schedule) + " needs m divisible by its rounds: m = " + std::to_string(m) +
                     ", p = " + std::to_string(p) + ", " + std::to_string(rounds.count(m)) +
                     " rounds; nearest " +
                     nearest_legal(m, 2 * m, [&](int other) { return rounds.equal(other); }));
  }
  std::vector<int> sizes;
  const int per_round = m / rounds.count(m);
  for (int first = 0; first < m; first += per_round) {
    const auto begin = request.slices.begin() + first;
    sizes.push_back(std::accumulate(begin, begin + per_round, 0));
  }
  return sizes;
}

}  // namespace

Schedule interleave_in_rounds(const Request& request, std::string_view name) {
  const int p = request.devices, v = request.chunks;
  const std::vector<int> sizes = round_sizes(request, name);
  const int largest = *std::max_element(sizes.begin(), sizes.end());
  const Units forwards = forward_units(request), backwards = backward_units(request);
  Schedule schedule = empty_schedule(request, p * v);
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<int> stages = looped_stages(rank, p, v);
    schedule.devices[rank] =
        one_forward_one_backward(forward_order(groups_of(forwards, sizes), stages),
                                 backward_order(groups_of(backwards, sizes), stages),
                                 in_flight_targets(request, (v - 1) * largest + 2 * (p - rank - 1)), rank);
  }
  return schedule;
}

}  // namespace penstock::schedule
