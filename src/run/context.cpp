// SPDX-License-Identifier: Apache-2.0
#include "run/context.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/refusal.h"
#include "base/text.h"
#include "model/memory/context_traffic.h"

namespace penstock::run {
namespace {

using Count = std::int64_t;

// The heads of one logical shard of the tensor group.
model::Shape shard_of(const Options& options) {
  return model::shape_of_rank(options.model.shape, options.numerics.tensor);
}

bool share_heads(const Options& options, Count ranks) { return model::share_heads(shard_of(options), ranks); }
Count mixed_heads(const Options& options) {
  return model::mixed_heads(shard_of(options), options.parallel.cp);
}

std::string name_of_heads(const Options& options) {
  const Count shards = options.numerics.tensor;
  return "the " + std::to_string(shard_of(options).heads) + " query and " +
         std::to_string(shard_of(options).kv_heads) + " key heads" +
         (shards > 1 ? " of each of numerics.tensor = " + std::to_string(shards) + " shards" : "");
}

void check_mode(const Options& options) {
  const ParallelOptions& parallel = options.parallel;
  const std::string set = "parallel.cp_mode = " + json_quote(parallel.cp_mode);
  const std::string ranks = "parallel.cp = " + std::to_string(parallel.cp);
  if (parallel.cp_mode == "heads" && !share_heads(options, parallel.cp)) {
    throw InputError(set + ": " + ranks + " ranks cannot split " + name_of_heads(options) + "; use cp = " +
                     nearest_legal(parallel.cp, shard_of(options).heads,
                                   [&](Count count) { return share_heads(options, count); }) +
                     ", or cp_mode = \"" + (mixed_heads(options) > 1 ? "mixed" : "query") + "\"");
  }
  if (parallel.cp_mode == "mixed" && mixed_heads(options) == 1) {
    throw InputError(set + ": " + ranks + " has no divisor but itself that splits " + name_of_heads(options) +
                     "; use cp_mode = \"" + (share_heads(options, parallel.cp) ? "heads" : "query") + "\"");
  }
}

void settle_slices(Options& options) {
  const Count pieces = 2 * options.parallel.cp, tokens = options.data.seq_len;
  require(tokens % pieces == 0, "data.seq_len = " + std::to_string(tokens) +
                                    " is not a multiple of the 2 · parallel.cp = " + std::to_string(pieces) +
                                    " pieces of the context ranks; use " + multiples_near(tokens, pieces));
  options.schedule.slice_unit = std::lcm(options.schedule.slice_unit, pieces);
}

model::ContextSplit split_of(const Options& options, const std::string& mode) {
  const Count ranks = options.parallel.cp;
  return {.ranks = ranks,
          .heads = mode == "heads"   ? ranks
                   : mode == "mixed" ? mixed_heads(options)
                                     : 1,
          .gathers = mode == "gather" && ranks > 1};
}

}  // namespace

model::ContextSplit context_split(const Options& options) {
  return split_of(options, options.parallel.cp_mode);
}

bool keys_in_two_ranges(const Options& options) {
  return options.parallel.cp > 1 && options.parallel.cp_mode != "heads";
}

std::vector<std::string> context_modes(const Options& options) {
  const std::string& exchange = options.schedule.exchange;
  const bool keys_in_one_range = options.data.mask == "documents" && exchange != "off" && exchange != "auto";
  std::vector<std::string> modes;
  if (share_heads(options, options.parallel.cp)) modes.emplace_back("heads");
  if (keys_in_one_range && !modes.empty()) return modes;
  if (mixed_heads(options) > 1) modes.emplace_back("mixed");
  modes.emplace_back("query");
  if (exchange == "off") modes.emplace_back("gather");
  return modes;
}

Bytes context_bytes(const Run& run, const std::string& mode) {
  Tokens longest = 0;
  for (const model::TokenRange& slice : run.slices.front()) longest = std::max(longest, slice.length);
  const double tokens = static_cast<double>(run.sequences() * longest) / run.mesh.context;
  const model::ContextTraffic one = model::context_traffic(
      shard_of(run.options), split_of(run.options, mode), tokens,
      static_cast<double>(element_size(run.precision)), static_cast<double>(accumulator_size(run.precision)));
  return static_cast<Bytes>(static_cast<double>(run.shards_of_rank()) * one.total());
}

model::Shape cached_shape(const Run& run) {
  const Count heads = context_split(run.options).heads;
  model::Shape shape = shard_of(run.options);
  shape.heads /= heads;
  shape.kv_heads = std::max<Count>(shape.kv_heads / heads, 1);
  return shape;
}

std::vector<model::TokenRange> cached_slices(const Run& run, int micro_batch) {
  const model::ContextSplit split = context_split(run.options);
  const Tokens ranks = split.gathers ? 1 : run.mesh.context / split.heads;
  std::vector<model::TokenRange> slices = run.slices[static_cast<std::size_t>(micro_batch)];
  for (model::TokenRange& slice : slices) slice = {slice.begin / ranks, slice.length / ranks};
  return slices;
}

void settle_context(Options& options) {
  ParallelOptions& parallel = options.parallel;
  if (parallel.cp == 1) return;
  if (parallel.cp_mode == "auto") parallel.cp_mode = context_modes(options).front();
  check_mode(options);
  settle_slices(options);
}

}  // namespace penstock::run
