// SPDX-License-Identifier: Apache-2.0
// SlimPipe, SC'25 (DOI 10.1145/3712285.3759855), plain and interleaved.
// In flight: min(m·n·v, n·v + 2(p-r-1)) slice-chunks. Bubble: (p-1)/(m·n·v + p-1) of the step.
//
// Each device has two more in flight than the next one (in 1F1B one more), which puts the forwards of all
// devices in one time slot, and likewise the backwards.
#include "schedule/generators/slimpipe.h"

#include "base/error.h"
#include "base/refusal.h"
#include "schedule/generators/catalogue.h"
#include "schedule/patterns/phases.h"

namespace penstock::schedule {

namespace {

std::string describe(int n, int p) { return "n = " + std::to_string(n) + ", p = " + std::to_string(p); }

// At a chunk turn the group's first slice must be back from the last device, so a group has >= p slices.
int group_size(int n, const Request& request) {
  const int p = request.devices, g = request.group;
  if (n < p) {
    throw InputError("slimpipe with v > 1 needs n >= p in every micro-batch: " + describe(n, p) +
                     "; nearest n = " + std::to_string(p) + ", or v = 1");
  }
  if (g == 0) return slice_group(n, p, request.chunks, request.transfer_in_forwards);
  const auto legal = [&](int group) { return group >= p && n % group == 0; };
  if (!legal(g)) {
    throw InputError("slimpipe needs a group that divides n and is >= p: group = " + std::to_string(g) +
                     ", " + describe(n, p) + "; nearest " + nearest_legal(g, n, legal));
  }
  return g;
}

std::vector<int> group_sizes(const Request& request) {
  std::vector<int> sizes;
  for (const int n : request.slices) {
    const int size = request.chunks == 1 ? n : group_size(n, request);
    sizes.insert(sizes.end(), n / size, size);
  }
  return sizes;
}

}  // namespace

int slice_group(int slices, int devices, int chunks, double transfer_in_forwards) {
  if (chunks == 1 || slices < devices) return slices;
  int group = devices;
  while (group < slices && (slices % group != 0 || group - devices < devices * transfer_in_forwards)) ++group;
  return group;
}

Schedule slimpipe(const Request& request) {
  const int p = request.devices, v = request.chunks;
  const std::vector<int> sizes = group_sizes(request);
  const Units forwards = forward_units(request), backwards = backward_units(request);
  Schedule schedule = empty_schedule(request, p * v);
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<int> stages = looped_stages(rank, p, v);
    std::vector<int> targets;
    for (const int n : request.slices) targets.push_back(n * v + 2 * (p - rank - 1));
    schedule.devices[rank] =
        one_forward_one_backward(forward_order(groups_of(forwards, sizes), stages),
                                 backward_order(groups_of(backwards, sizes), stages), targets, rank);
  }
  return schedule;
}

}  // namespace penstock::schedule
