// SPDX-License-Identifier: Apache-2.0
// The axes of the mesh: the ways in which ranks split one model and one batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::mesh {

// In rank order, fastest first. Experts fold into the tensor, context and data ranks, so the expert axis has
// no coordinate of its own (Liu et al. 2025, "MoE parallel folding").
enum class Axis : std::uint8_t { Tensor, Context, Data, Pipeline, Expert };

// Process groups.
enum class Group : std::uint8_t {
  Pipeline,       // p ranks: the stages of one pipeline
  Tensor,         // t ranks: heads and ffn columns of one layer
  Context,        // c ranks: the tokens of one sequence
  Replica,        // c·d ranks: the same dense weights
  Vocabulary,     // t·p ranks: the rows of the embedding and of the output matrix
  Expert,         // e ranks: the experts of one layer
  ExpertReplica,  // t·c·d/e ranks: the same expert weights
  World,          // all ranks
};
inline constexpr std::array kGroups{Group::Pipeline,   Group::Tensor, Group::Context,       Group::Replica,
                                    Group::Vocabulary, Group::Expert, Group::ExpertReplica, Group::World};

std::string_view name_of(Axis axis);    // "tensor", "context", "data", "pipeline", "expert"
std::string_view name_of(Group group);  // "pipeline", "tensor", ..., "expert-replica", "world"
std::optional<Group> parse_group(std::string_view name);

}  // namespace penstock::mesh
