// SPDX-License-Identifier: Apache-2.0
// The part of a tensor that a rank holds. Every tensor is cut along at most one dimension; the parts of all
// ranks, without padding, tile it exactly once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "mesh/mesh.h"

namespace penstock::mesh {

// A part of one dimension. `held` ≥ `count` elements are in memory: its own, [begin, begin + count) of the
// whole, then padding, which is always zero.
struct Shard {
  int dimension = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t held = 0;
  // Of the ranks with the same part, the owner writes it to files and counts it in sums over all parameters.
  // 0 for the owner, else the number of the copy.
  int copy = 0;

  bool holds(std::int64_t index) const { return index >= begin && index < begin + count; }
  friend bool operator==(const Shard&, const Shard&) = default;
};

// Block `index` of `whole` elements in `parts` equal blocks, the last ones padded.
Shard padded_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension = 0);

// Block `index` of `parts` whose sizes differ by at most one `unit`, longer ones first. The last block also
// holds the remainder that `unit` does not divide.
Shard even_block(std::int64_t whole, std::int64_t parts, std::int64_t index, int dimension = 0,
                 std::int64_t unit = 1);

// How the parameters of a layer are cut (docs/mesh.md, "Tensor ranks"; docs/moe.md, "The layer"): by the role
// of a tensor, derived from its Hugging Face name.
enum class Cut : std::uint8_t {
  Whole,        // norms, router: on every rank of the stage
  Heads,        // rows by query heads (q_proj)
  KeyHeads,     // rows by key heads (k_proj, v_proj); a head is on several ranks where there are fewer than
                // ranks
  Rows,         // ffn columns of the layer: rows of gate_proj and up_proj
  HeadColumns,  // columns by query heads (o_proj)
  Columns,      // columns of down_proj
  Vocabulary,   // rows of the embedding and of the output matrix, padded
  Expert,       // whole, on the ranks that have this expert
};
Cut cut_of(std::string_view name);

// The number of the expert whose weight has this name; -1 for other weights.
std::int64_t expert_of(std::string_view name);

// The facts besides a tensor's sizes that determine its cut.
struct Sharding {
  Mesh mesh;
  std::int64_t heads = 1, kv_heads = 1, experts = 1;
  bool vocabulary_parallel = false;  // cut over t·p ranks, else over t
};

// The experts that the rank at `at` holds, of so many.
Shard experts_of(const Mesh& mesh, std::int64_t experts, const Coordinates& at);

// The part of the tensor that the rank at `at` holds, provided that its stage has the tensor. `sizes` are
// those of the whole tensor. Count 0 when nothing is held (an expert of another rank).
Shard shard_of(std::string_view name, const std::vector<std::int64_t>& sizes, const Sharding& sharding,
               const Coordinates& at);

// A range of elements of the whole tensor, flat in row-major order, and its offset among the shard's own
// elements (without padding).
struct Range {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t own_begin = 0;
};
std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes);

// A tensor's share of flat elements updated by one of `replicas` ranks (docs/mesh.md, "Replicas"); cut at
// multiples of 64.
inline constexpr std::int64_t kShareUnit = 64;
Shard flat_share(std::int64_t elements, std::int64_t replicas, std::int64_t index);

// Elements of the longest of them: the first share, or the last, which has what makes no whole unit.
std::int64_t longest_flat_share(std::int64_t elements, std::int64_t replicas);

// How the c·d ranks with the same weights share out masters, moments and the work on them (docs/mesh.md,
// "Replicas", with the hierarchy of ZeRO++ and MiCS): `shards` consecutive ranks have a share each, and every
// group of them has the same. The numbers are this rank's.
struct StateSharing {
  int shards = 1;
  int shard = 0;
  int copies = 1;
  int copy = 0;

  friend bool operator==(const StateSharing&, const StateSharing&) = default;
};

// Of a tensor's flat elements on this rank, those whose states it has, and of these the part that it alone
// writes to files and counts in sums over all parameters.
Shard state_share(std::int64_t elements, const StateSharing& sharing);
Shard written_share(std::int64_t elements, const StateSharing& sharing);

// The ranges of a shard's flat elements [part.begin, part.begin + part.count), own_begin counted from
// part.begin. Padding, which comes last, has no range.
std::vector<Range> ranges_of(const Shard& shard, const std::vector<std::int64_t>& sizes, const Shard& part);

}  // namespace penstock::mesh
