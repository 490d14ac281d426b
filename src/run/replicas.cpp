// SPDX-License-Identifier: Apache-2.0
#include "run/replicas.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/refusal.h"

namespace penstock::run {
namespace {

using Count = std::int64_t;

// The nearest numbers of groups for these replicas, and of replicas for these groups.
std::string legal_groups_near(Count groups, Count replicas) {
  const std::string others =
      nearest_legal(groups, kMostDevices, [&](Count count) { return keeps_tree(count, replicas); });
  const std::string fewer =
      nearest_legal(replicas, groups, [&](Count count) { return keeps_tree(groups, count); });
  return "; use numerics.replicas = " + others + ", or parallel.dp = " + fewer;
}

void check_groups(const Options& options) {
  const Count groups = options.numerics.replicas, replicas = options.parallel.dp;
  const std::string set = setting("numerics.replicas", groups);
  require(groups % replicas == 0, set + " is not a multiple of " + setting("parallel.dp", replicas) +
                                      legal_groups_near(groups, replicas));
  require(keeps_tree(groups, replicas),
          set + " is " + std::to_string(groups / replicas) + " times " + setting("parallel.dp", replicas) +
              "; groups of the batch are added in a binary tree, so that must be a power of two" +
              legal_groups_near(groups, replicas));
  const bool even = replicas > 1 || std::has_single_bit(static_cast<std::uint64_t>(groups));
  require(options.parallel.cp == 1 || even,
          set + " with " + setting("parallel.dp", replicas) + " and " +
              setting("parallel.cp", options.parallel.cp) +
              ": ranks of a context are added in the same binary tree, so it must be a power of two; use "
              "parallel.dp = " +
              std::to_string(groups));
}

// All groups must have the same number of micro-batches.
void check_batch(const Options& options, const std::string& groups) {
  const TrainOptions& train = options.train;
  const Count unit = train.micro_batch * options.numerics.replicas;
  const std::string wrong = setting("train.batch", train.batch) + " is not a multiple of " +
                            setting("train.micro_batch", train.micro_batch) +
                            (options.numerics.replicas > 1 ? " times " + groups : "");
  require(unit <= kMostSequences, wrong + ", which is more than a step may have; use fewer of both");
  require(train.batch % unit == 0, wrong + "; use " + multiples_near(train.batch, unit));
}

// `replicas` includes context ranks.
bool is_shard_group(Count ranks, Count replicas) {
  return replicas % ranks == 0 &&
         (ranks == replicas || std::has_single_bit(static_cast<std::uint64_t>(ranks)));
}

void settle_shard_group(ParallelOptions& parallel) {
  const Count replicas = parallel.dp * parallel.cp;
  if (parallel.shard_group == 0) parallel.shard_group = replicas;
  const auto legal = [&](Count ranks) { return is_shard_group(ranks, replicas); };
  require(legal(parallel.shard_group), setting("parallel.shard_group", parallel.shard_group) +
                                           " is neither a power of two that divides the " +
                                           std::to_string(replicas) +
                                           " replicas (parallel.dp · cp) nor all of them; use " +
                                           nearest_legal(parallel.shard_group, replicas, legal));
}

Count ranks_of_replica(const ParallelOptions& parallel) { return parallel.pp * parallel.cp * parallel.tp; }

bool divides_batch(const Options& options, Count replicas) {
  const Count groups = options.numerics.replicas;
  return groups > 0 ? keeps_tree(groups, replicas)
                    : options.train.batch % (options.train.micro_batch * replicas) == 0;
}

bool fits_mesh(const Options& options, Count replicas) {
  const ParallelOptions& parallel = options.parallel;
  const Count with_context = replicas * parallel.cp;
  return divides_batch(options, replicas) && parallel.tp * with_context % parallel.ep == 0 &&
         (parallel.shard_group == 0 || is_shard_group(parallel.shard_group, with_context));
}

}  // namespace

void fit_replicas(Options& options, std::optional<Count> ranks) {
  ParallelOptions& parallel = options.parallel;
  if (parallel.dp != 0) return;
  parallel.dp = std::max<Count>(options.numerics.replicas, 1);
  if (!ranks) return;
  const Count most = std::max<Count>(*ranks / ranks_of_replica(parallel), 1);
  const auto greatest = [&](auto&& legal) {
    Count replicas = most;
    while (replicas > 0 && !legal(options, replicas)) --replicas;
    return replicas;
  };
  parallel.dp = greatest(fits_mesh);
  // None fits: a later check names the legal ep or shard_group.
  if (parallel.dp == 0) parallel.dp = std::max<Count>(greatest(divides_batch), 1);
}

bool holds_replicas(const Options& options, Count ranks) {
  for (Count replicas = ranks / ranks_of_replica(options.parallel); replicas > 0; --replicas) {
    if (fits_mesh(options, replicas)) return true;
  }
  return false;
}

Options read_fitted_options(const std::string& path, std::span<const std::string> overrides) {
  Options options = read_options(path, overrides);
  fit_replicas(options, {});
  return options;
}

bool keeps_tree(Count groups, Count replicas) {
  if (groups % replicas != 0) return false;
  return replicas == 1 || std::has_single_bit(static_cast<std::uint64_t>(groups / replicas));
}

void settle_replicas(Options& options) {
  const bool given = options.numerics.replicas != 0;
  if (!given) options.numerics.replicas = options.parallel.dp;
  check_groups(options);
  check_batch(options, given ? setting("numerics.replicas", options.numerics.replicas)
                             : setting("parallel.dp", options.parallel.dp));
  settle_shard_group(options.parallel);
}

schedule::ReplicaSharding replica_sharding_of(const Options& options) {
  const ParallelOptions& parallel = options.parallel;
  const Count replicas = parallel.dp * parallel.cp, ranks = parallel.tp * replicas;
  const bool experts = options.model.shape.experts > 1 && ranks > parallel.ep;
  const bool alone = parallel.shard_group == 1 && (!experts || replicas > 1);
  if (alone || parallel.shard == "off") return schedule::ReplicaSharding::None;
  return parallel.shard == "weights" ? schedule::ReplicaSharding::Weights
                                     : schedule::ReplicaSharding::Optimizer;
}

Run with_sharded_weights(Run run) {
  run.options.parallel.shard = "weights";
  run.replica_sharding = replica_sharding_of(run.options);
  return run;
}

mesh::StateSharding state_sharding_of(const Run& run, const mesh::Coordinates& at) {
  const auto replicas = static_cast<int>(run.mesh.replicas()),
             replica = static_cast<int>(mesh::replica_of(run.mesh, at));
  const bool whole = run.replica_sharding == schedule::ReplicaSharding::None;
  const int shards = whole ? 1 : static_cast<int>(run.options.parallel.shard_group);
  return {.shards = shards, .shard = replica % shards, .copies = replicas / shards, .copy = replica / shards};
}

// As many ranks of a shard group share the states as divide the experts' replicas (gcd).
mesh::StateSharding sharding_of_expert_replica(const Run& run, std::int64_t expert_replica) {
  const auto replicas = static_cast<int>(run.mesh.expert_replicas()),
             replica = static_cast<int>(expert_replica);
  const bool all = run.options.parallel.shard_group == run.mesh.replicas();
  const bool whole = run.replica_sharding == schedule::ReplicaSharding::None;
  const int shards = whole ? 1
                     : all ? replicas
                           : std::gcd(replicas, static_cast<int>(run.options.parallel.shard_group));
  return {.shards = shards, .shard = replica % shards, .copies = replicas / shards, .copy = replica / shards};
}

mesh::StateSharding expert_sharding_of(const Run& run, const mesh::Coordinates& at) {
  return sharding_of_expert_replica(run, mesh::expert_replica_of(run.mesh, at));
}

bool has_replicas(const Run& run) {
  return run.mesh.replicas() > 1 || (run.shape().experts > 1 && run.mesh.expert_replicas() > 1);
}

Count replica_room(const Run& run, Count longest) {
  int ranks = 1;
  const auto meet = [&](const mesh::StateSharding& sharding) {
    ranks = std::max({ranks, sharding.shards, sharding.copies});
  };
  meet(state_sharding_of(run, {}));
  if (run.shape().experts > 1) meet(expert_sharding_of(run, {}));
  return kReplicaWindow * (ranks - 1) * std::min(kReplicaPiece, longest);
}

Count groups_of_replica(const Options& options) { return options.numerics.replicas / options.parallel.dp; }

int gradient_buffers(const Options& options) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(groups_of_replica(options))));
}

}  // namespace penstock::run
