// SPDX-License-Identifier: Apache-2.0
// Reasons to reject a candidate, each defined once. Memory is separate (layout_memory.h), since it reports an
// amount.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plan/layout.h"

namespace penstock::plan {

enum class Rejection : std::uint8_t {
  Heads,         // t does not divide the heads, or is neither a divisor nor a multiple of the key-value heads
  TensorInNode,  // t crosses a node's boundary
  Experts,       // e does not divide the experts, or the ranks that hold them
  Batch,         // d·b does not divide the global batch
  Layers,        // more stages than layers
  Tokens,        // slices too short, or the sequence is not a multiple of n·c·t, or of 2·c if c > 1
  Schedule,      // the schedule does not support these m, n, v
  Duplicate,     // it repeats another candidate's step (repeats_another)
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

// Values that the constraint allows for this workload, after a semicolon: "; heads = 12 is divided by 1, 2,
// ..." Empty where no list of values helps.
std::string legal_values(const Workload& workload, std::int64_t gpus_per_node, Rejection why);

// Shortest slice worth a kernel launch, in tokens summed over context ranks.
inline constexpr Tokens kShortestSlice = 256;

// True for a schedule of slices with n = 1, except slimpipe: its unsliced version makes the same program.
bool repeats_another(const Layout& layout);

// Check the mesh alone, then the mesh with a micro-batch, then the rest of the layout except memory. None
// repeats the checks of the ones before. `folds_experts`: see sim::Engine.
std::optional<Rejection> reject_mesh(const Workload& workload, const mesh::Mesh& mesh,
                                     std::int64_t gpus_per_node, bool folds_experts = true);
std::optional<Rejection> reject_batch(const Workload& workload, const mesh::Mesh& mesh, int micro_batch);
std::optional<Rejection> reject_layout(const Workload& workload, const Layout& layout);

// Runs all three checks.
std::optional<Rejection> reject(const Workload& workload, const Layout& layout, std::int64_t gpus_per_node,
                                bool folds_experts = true);

}  // namespace penstock::plan
