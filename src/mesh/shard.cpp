// SPDX-License-Identifier: Apache-2.0
#include "mesh/shard.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/whole.h"

namespace penstock::mesh {
namespace {

bool ends(std::string_view name, std::string_view end) {
  return name.ends_with(end) || name.ends_with(std::string(end) + ".weight");
}

std::int64_t rank_in_stage(const Mesh& mesh, const Coordinates& at) {
  return (std::int64_t{at.data} * mesh.context + at.context) * mesh.tensor + at.tensor;
}

Shard whole_of(const std::vector<std::int64_t>& sizes, std::int64_t copy) {
  return {.count = sizes.front(), .held = sizes.front(), .copy = static_cast<int>(copy)};
}

// Blocks of whole heads; with more ranks than heads, several consecutive ranks hold the same head.
Shard head_block(std::int64_t rows, std::int64_t heads, std::int64_t parts, std::int64_t index,
                 int dimension) {
  const std::int64_t together = std::max<std::int64_t>(parts / heads, 1);
  Shard shard = even_block(rows, parts / together, index / together, dimension, rows / heads);
  shard.copy = static_cast<int>(index % together);
  return shard;
}

}  // namespace

Shard padded_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension) {
  const std::int64_t held = ceil_div(whole, parts);
  const std::int64_t begin = std::min(index * held, whole);
  return {.dimension = dimension, .begin = begin, .count = std::min(held, whole - begin), .held = held};
}

Shard even_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension,
                 std::int64_t unit) {
  const std::int64_t units = whole / unit, least = units / parts, longer = units % parts;
  const std::int64_t begin = (index * least + std::min(index, longer)) * unit;
  const bool last = index + 1 == parts;
  const std::int64_t count = last ? whole - begin : (least + (index < longer ? 1 : 0)) * unit;
  return {.dimension = dimension, .begin = begin, .count = count, .held = count};
}

std::int64_t expert_of(std::string_view name) {
  constexpr std::string_view kMark = ".experts.";
  const std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return -1;
  std::int64_t expert = -1;
  const char* first = name.data() + at + kMark.size();
  std::from_chars(first, name.data() + name.size(), expert);
  return expert;
}

Cut cut_of(std::string_view name) {
  if (expert_of(name) >= 0) return Cut::Expert;
  if (name.find(".shared_expert") != std::string_view::npos) return Cut::Whole;
  if (ends(name, "embed_tokens") || ends(name, "lm_head")) return Cut::Vocabulary;
  if (ends(name, "q_proj")) return Cut::Heads;
  if (ends(name, "k_proj") || ends(name, "v_proj")) return Cut::KeyHeads;
  if (ends(name, "o_proj")) return Cut::HeadColumns;
  if (ends(name, "gate_proj") || ends(name, "up_proj")) return Cut::Rows;
  return ends(name, "down_proj") ? Cut::Columns : Cut::Whole;
}

Shard experts_of(const Mesh& mesh, std::int64_t experts, const Coordinates& at) {
  return even_block(experts, mesh.expert, rank_in_stage(mesh, at) % mesh.expert);
}

Shard shard_of(std::string_view name, const std::vector<std::int64_t>& sizes, const Sharding& sharding,
               const Coordinates& at) {
  const Mesh& mesh = sharding.mesh;
  const std::int64_t replica = std::int64_t{at.data} * mesh.context + at.context;
  const auto replicated = [&](Shard shard) {  // tensor copies vary fastest, then context and data
    const std::int64_t copies = std::max<std::int64_t>(mesh.tensor / sharding.kv_heads, 1);
    shard.copy += static_cast<int>(replica * (cut_of(name) == Cut::KeyHeads ? copies : 1));
    return shard;
  };
  switch (cut_of(name)) {
    case Cut::Heads:
      return replicated(head_block(sizes[0], sharding.heads, mesh.tensor, at.tensor, 0));
    case Cut::KeyHeads:
      return replicated(head_block(sizes[0], sharding.kv_heads, mesh.tensor, at.tensor, 0));
    case Cut::HeadColumns:
      return replicated(head_block(sizes[1], sharding.heads, mesh.tensor, at.tensor, 1));
    case Cut::Rows:
      return replicated(even_block(sizes[0], mesh.tensor, at.tensor, 0));
    case Cut::Columns:
      return replicated(even_block(sizes[1], mesh.tensor, at.tensor, 1));
    case Cut::Vocabulary: {
      const bool over_pipeline = sharding.vocabulary_parallel;
      const std::int64_t parts = std::int64_t{mesh.tensor} * (over_pipeline ? mesh.pipeline : 1);
      return replicated(
          padded_block(sizes[0], parts, at.tensor + (over_pipeline ? at.pipeline * mesh.tensor : 0)));
    }
    case Cut::Expert: {
      const bool here = experts_of(mesh, sharding.experts, at).holds(expert_of(name));
      return here ? whole_of(sizes, rank_in_stage(mesh, at) / mesh.expert) : Shard{};
    }
    case Cut::Whole:
      break;
  }
  return whole_of(sizes, rank_in_stage(mesh, at));
}

std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes) {
  const auto cut = sizes.begin() + shard.dimension;
  const std::int64_t rows = std::reduce(sizes.begin(), cut, std::int64_t{1}, std::multiplies());
  const std::int64_t inner = std::reduce(cut + 1, sizes.end(), std::int64_t{1}, std::multiplies());
  std::vector<Range> ranges;
  if (shard.count == 0) return ranges;
  for (std::int64_t row = 0; row < rows; ++row) {
    ranges.push_back({(row * *cut + shard.begin) * inner, shard.count * inner, row * shard.count * inner});
  }
  return ranges;
}

Shard flat_share(std::int64_t elements, std::int64_t replicas, std::int64_t index) {
  return even_block(elements, replicas, index, 0, kShareUnit);
}

std::int64_t longest_flat_share(std::int64_t elements, std::int64_t replicas) {
  return std::max(flat_share(elements, replicas, 0).count,
                  flat_share(elements, replicas, replicas - 1).count);
}

Shard state_share(std::int64_t elements, const StateSharding& sharding) {
  return flat_share(elements, sharding.shards, sharding.shard);
}

Shard written_share(std::int64_t elements, const StateSharding& sharding) {
  const Shard share = state_share(elements, sharding);
  Shard part = flat_share(share.count, sharding.copies, sharding.copy);
  part.begin += share.begin;
  return part;
}

std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes, const Shard& part) {
  std::vector<Range> ranges;
  const std::int64_t end = part.begin + part.count;
  for (const Range& range : ranges_of(shard, sizes)) {
    const std::int64_t first = std::max(range.own_begin, part.begin);
    const std::int64_t last = std::min(range.own_begin + range.count, end);
    if (first < last)
      ranges.push_back({range.begin + first - range.own_begin, last - first, first - part.begin});
  }
  return ranges;
}

}  // namespace penstock::mesh
