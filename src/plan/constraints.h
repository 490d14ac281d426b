// SPDX-License-Identifier: Apache-2.0
// What makes a candidate impossible, each stated once. Memory is apart (layout_memory.h): it says by how
// much.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "plan/layout.h"

namespace penstock::plan {

enum class Rejection : std::uint8_t {
  Heads,          // t does not divide the heads, or neither divides the key-value heads
  TensorInNode,   // t crosses a node's boundary
  Experts,        // e does not divide the experts, or d·c
  Batch,          // d·b does not divide the global batch
  Layers,         // p·v does not divide the layers
  Tokens,         // slices are too short, or n·c·t does not divide the sequence
  Schedule,       // the schedule does not take these m, n, v
  SlicesOfBatch,  // slices of several sequences at once: slices exist to shorten one
  Exchange,       // context exchange without a slot grid, slices or a pipeline
  Vocabulary,     // vocabulary parallelism without a slot grid or a pipeline
  DeviceMemory,   // does not fit, whatever is offloaded
  HostMemory,     // what must be offloaded does not fit in the host
};
inline constexpr std::size_t kRejections = 12;
inline constexpr std::array<std::string_view, kRejections> kRejectionNames{
    "heads",    "tensor_in_node",  "experts",  "batch",      "layers",        "tokens",
    "schedule", "slices_of_batch", "exchange", "vocabulary", "device_memory", "host_memory"};
constexpr std::string_view name_of(Rejection rejection) {
  return kRejectionNames[static_cast<std::size_t>(rejection)];
}

// One sentence that says what the constraint is.
std::string_view sentence_of(Rejection rejection);

// The shortest slice that is worth a kernel launch, in tokens of the whole sequence.
inline constexpr Tokens kShortestSlice = 256;

// Of the mesh alone; of the mesh with a micro-batch; of everything but memory. Each checks only what is new
// to it.
std::optional<Rejection> reject_mesh(const Workload& workload, const model::Spread& spread,
                                     std::int64_t gpus_per_node);
std::optional<Rejection> reject_batch(const Workload& workload, const model::Spread& spread, int micro_batch);
std::optional<Rejection> reject_layout(const Workload& workload, const Layout& layout);

// All three.
std::optional<Rejection> reject(const Workload& workload, const Layout& layout, std::int64_t gpus_per_node);

}  // namespace penstock::plan
