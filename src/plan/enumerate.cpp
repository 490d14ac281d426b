// SPDX-License-Identifier: Apache-2.0
#include "plan/enumerate.h"

#include "base/whole.h"
#include "run/options.h"

#include <algorithm>
#include <numeric>

namespace penstock::plan {
namespace {

std::vector<int> divisors(std::int64_t value) {
  std::vector<int> low, high;
  for (std::int64_t i = 1; i * i <= value; ++i) {
    if (value % i != 0) continue;
    low.push_back(static_cast<int>(i));
    if (i != value / i) high.push_back(static_cast<int>(value / i));
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// Keeps `values` ascending and without duplicates.
void append(std::vector<int>& values, const std::vector<int>& more) {
  values.insert(values.end(), more.begin(), more.end());
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

// Adds to each value that does not divide `whole` the divisor with the nearest ratio to it.
std::vector<int> with_nearest_divisors(std::vector<int> values, std::int64_t whole) {
  const std::vector<int> possible = divisors(whole);
  std::vector<int> nearest;
  for (const int value : values) {
    const auto apart = [value](int divisor) {
      return std::max(divisor, value) / static_cast<double>(std::min(divisor, value));
    };
    if (whole % value != 0) nearest.push_back(*std::ranges::min_element(possible, {}, apart));
  }
  append(values, nearest);
  return values;
}

std::vector<int> wanted_or(const std::vector<int>& wanted, std::vector<int> all) {
  return wanted.empty() ? all : wanted;
}

}  // namespace

std::vector<mesh::Mesh> all_meshes(const Workload& workload, const Cluster& cluster,
                                   const SearchSpace& space) {
  std::vector<mesh::Mesh> meshes;
  // Expert ranks are of the cluster's, too.
  const auto experts =
      wanted_or(space.expert, divisors(std::gcd(workload.model.shape.experts, cluster.gpus)));
  const std::int64_t most = cluster.engine == sim::kPenstock ? run::kMostDevices : cluster.gpus;
  for (const int t : wanted_or(space.tensor, divisors(cluster.gpus))) {
    if (cluster.gpus % t != 0) continue;
    for (const int c : wanted_or(space.context, divisors(cluster.gpus / t))) {
      if (cluster.gpus / t % c != 0) continue;
      for (const int p : wanted_or(space.pipeline, divisors(cluster.gpus / t / c))) {
        if (cluster.gpus / t / c % p != 0) continue;
        const std::int64_t d = cluster.gpus / t / c / p;
        if (std::max<std::int64_t>({t, c, p, d}) > most) continue;
        for (const int e : experts) meshes.push_back({t, c, e, static_cast<int>(d), p});
      }
    }
  }
  return meshes;
}

std::vector<int> chunks_to_try(const Workload& workload, const mesh::Mesh& mesh, const SearchSpace& space) {
  const std::int64_t layers = workload.model.shape.layers, p = mesh.pipeline;
  std::vector<int> chunks = divisors(std::max<std::int64_t>(1, layers / p));
  if (layers % p != 0) append(chunks, divisors(ceil_div(layers, p)));
  append(chunks, {2});
  return wanted_or(space.chunks, std::move(chunks));
}

std::vector<int> slices_to_try(const Workload& workload, const mesh::Mesh& mesh, const SearchSpace& space) {
  std::vector<int> slices{1, 2, 4, 8, 16, 32, 64, 128, 256};
  append(slices, {mesh.pipeline, 2 * mesh.pipeline, 4 * mesh.pipeline});
  const std::int64_t parts = std::int64_t{mesh.context} * mesh.tensor;
  return wanted_or(space.slices, with_nearest_divisors(std::move(slices),
                                                       std::max<std::int64_t>(1, workload.seq_len / parts)));
}

std::vector<int> micro_batches_to_try(const Workload& workload, const mesh::Mesh& mesh,
                                      const SearchSpace& space) {
  std::vector<int> sizes{1, 2, 4, 8};
  while (2 * sizes.back() * workload.seq_len <= kShortTokens) sizes.push_back(2 * sizes.back());
  return wanted_or(
      space.micro_batch,
      with_nearest_divisors(std::move(sizes), std::max<std::int64_t>(1, workload.global_batch / mesh.data)));
}

}  // namespace penstock::plan
