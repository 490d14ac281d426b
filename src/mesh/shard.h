// SPDX-License-Identifier: Apache-2.0
// The part of a tensor that a rank holds. Every tensor is cut along at most one dimension; the parts of all
// ranks, without padding, tile it exactly once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mesh/mesh.h"

namespace penstock::mesh {

// A part of one dimension. `held` ≥ `count` elements are in memory: elements [begin, begin + count) of the
// whole, then padding, which is always zero.
struct Shard {
  int dimension = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t held = 0;
  // Index among the ranks with the same part. Copy 0, the owner, writes it to files and counts it in sums
  // over all parameters.
  int copy = 0;

  bool holds(std::int64_t index) const { return index >= begin && index < begin + count; }
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Block `index` of `parts` equal blocks of `whole` elements; the last ones are padded.
Shard padded_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension = 0);

// Block `index` of `parts` blocks whose sizes differ by at most one `unit`, longer ones first. The last block
// also holds the remainder of whole / unit.
Shard even_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension = 0,
                 std::int64_t unit = 1);

// How a parameter is cut (docs/mesh.md, "Tensor ranks"; docs/moe.md, "The layer"): by the role of the tensor,
// derived from its Hugging Face name.
enum class Cut : std::uint8_t {
  Whole,        // norms, router: on every rank of the stage
  Heads,        // rows by query heads (q_proj)
  KeyHeads,     // rows by key heads (k_proj, v_proj); with fewer heads than ranks, several ranks hold a head
  Rows,         // ffn columns of the layer: rows of gate_proj and up_proj
  HeadColumns,  // columns by query heads (o_proj)
  Columns,      // columns of down_proj
  Vocabulary,   // rows of the embedding and of the output matrix, padded
  Expert,       // whole, on the ranks that hold this expert
};
Cut cut_of(std::string_view name);

// The index of the expert that the weight with this name belongs to; -1 for other weights.
std::int64_t expert_of(std::string_view name);

// What determines a tensor's cut in addition to its sizes.
struct Sharding {
  Mesh mesh;
  std::int64_t heads = 1, kv_heads = 1, experts = 1;
  bool vocabulary_parallel = false;  // cut over t·p ranks, else over t
};

// Which of `experts` experts the rank at `at` holds.
Shard experts_of(const Mesh& mesh, std::int64_t experts, const Coordinates& at);

// The part of the tensor that the rank at `at` holds if its stage has the tensor. `sizes` is the whole
// tensor's. Count 0 if the rank holds nothing (another rank's expert).
Shard shard_of(std::string_view name, const std::vector<std::int64_t>& sizes, const Sharding& sharding,
               const Coordinates& at);

// A flat range of the whole tensor in row-major order, and its offset among the shard's own elements
// (without padding).
struct Range {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t own_begin = 0;
};
std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes);

// The share of a tensor's flat elements that one of `replicas` ranks updates (docs/mesh.md, "Replicas"); cut
// at multiples of 64.
inline constexpr std::int64_t kShareUnit = 64;
Shard flat_share(std::int64_t elements, std::int64_t replicas, std::int64_t index);

// Elements of the longest share: the first, or the last, which includes the remainder below a unit.
std::int64_t longest_flat_share(std::int64_t elements, std::int64_t replicas);

// How the c·d ranks with the same weights shard masters, moments and the optimizer step (docs/mesh.md,
// "Replicas", with the hierarchy of ZeRO++ and MiCS): each group of `shards` consecutive replicas holds all
// states once, one share per rank. `shard` and `copy` are this rank's.
struct StateSharding {
  int shards = 1;
  int shard = 0;
  int copies = 1;
  int copy = 0;

  friend bool operator==(const StateSharding&, const StateSharding&) = default;
};

// The part of a tensor's flat elements on this rank whose states it holds; and the part of that which it
// alone writes to files and counts in sums over all parameters.
Shard state_share(std::int64_t elements, const StateSharding& sharding);
Shard written_share(std::int64_t elements, const StateSharding& sharding);

// The ranges of a shard's flat elements [part.begin, part.begin + part.count); own_begin is relative to
// part.begin. Padding, which comes last, has no range.
std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes, const Shard& part);

}  // namespace penstock::mesh
