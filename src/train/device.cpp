// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "backend/device.h"
#include "base/error.h"

namespace penstock::train {

namespace {

// Checks what a GPU supports: head sizes, and the number of parts of a sum.
void require_kernels(const run::Run& run) {
  constexpr std::int64_t kHeadUnit = 8, kMostHead = 256, kMostParts = 64;
  const std::int64_t head = run.shape().head_dim();
  require(run.precision != model::Precision::BF16 || (head % kHeadUnit == 0 && head <= kMostHead),
          "model.head_size = " + std::to_string(head) +
              ": a GPU attends in bf16 with heads of a multiple of 8, up to 256; use such a size, or "
              "train.precision = \"f32\"");
  const std::int64_t parts = std::max<std::int64_t>(run.shards_of_rank(), run.mesh.tensor);
  require(parts <= kMostParts, "numerics.tensor = " + std::to_string(run.tensor_shards()) +
                                   " over parallel.tp = " + std::to_string(run.mesh.tensor) + " adds " +
                                   std::to_string(parts) + " parts at a time; a GPU adds up to 64");
}

}  // namespace

void require_device(const run::Run& run) {
  const std::string& asked = run.options.train.device;
  const bool gpu = !backend::compute_device().is_cpu();
  require(gpu || asked != "cuda",
          "train.device = \"cuda\": this program computes on the CPU only; ./dev build --gpu builds the one "
          "for GPUs, which penstock then starts");
  require(!gpu || asked != "cpu", "train.device = \"cpu\": this program computes on a GPU; start penstock");
  if (!gpu) return;
  backend::require_device(run.options.numerics.repeatable);
  require_kernels(run);
  require(run.offload == 0 || run.offload_to == run::OffloadTo::Host,
          "memory.offload_to = \"disk\": a GPU offloads records to the host's memory only; use \"host\", or "
          "train.device = \"cpu\"");
}

}  // namespace penstock::train
