// SPDX-License-Identifier: Apache-2.0
// Reasons to reject a candidate, each defined once. Memory is separate (layout_memory.h), since it reports an
// amount.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plan/layout.h"

namespace penstock::plan {

enum class Rejection : std::uint8_t {
  Heads,         // t does not divide the heads, or neither divides the key-value heads
  TensorInNode,  // t crosses a node's boundary
  Experts,       // e does not divide the experts, or the ranks that it is folded into
  Batch,         // d·b does not divide the global batch
  Layers,        // more stages than layers
  Tokens,        // slices too short, or n·c·t or, where c > 1, 2·c does not divide the sequence
  Schedule,      // the schedule does not support these m, n, v
  Exchange,      // context exchange without a slot grid, slices, a pipeline or equal stages
  Vocabulary,    // vocabulary parallelism without a slot grid or a pipeline
  Trainer,       // the cluster's trainer refuses it (trainer.h)
  DeviceMemory,  // does not fit even with full offloading
  HostMemory,    // the required offloading does not fit in host memory
};
inline constexpr std::size_t kRejections = static_cast<std::size_t>(Rejection::HostMemory) + 1;

std::string_view name_of(Rejection rejection);

// One sentence that describes the constraint.
std::string_view sentence_of(Rejection rejection);

// The shortest slice worth a kernel launch, in tokens of the whole sequence.
inline constexpr Tokens kShortestSlice = 256;

// Whether another schedule makes the same program of these sizes: a sliced one of whole sequences.
bool repeats_another(const Layout& layout);

// Checks of the mesh alone; of the mesh with a micro-batch; of everything but memory. Each checks only what
// it adds. `folds_experts`: see sim::Engine.
std::optional<Rejection> reject_mesh(const Workload& workload, const mesh::Mesh& mesh,
                                     std::int64_t gpus_per_node, bool folds_experts = true);
std::optional<Rejection> reject_batch(const Workload& workload, const mesh::Mesh& mesh, int micro_batch);
std::optional<Rejection> reject_layout(const Workload& workload, const Layout& layout);

// All three.
std::optional<Rejection> reject(const Workload& workload, const Layout& layout, std::int64_t gpus_per_node,
                                bool folds_experts = true);

}  // namespace penstock::plan
