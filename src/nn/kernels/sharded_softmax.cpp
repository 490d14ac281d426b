// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sharded_softmax.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

void check_tile(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard) {
  PENSTOCK_CHECK(logits.is_contiguous() && targets.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(logits.size(0) == targets.numel() && logits.size(1) == shard.held,
                 "a tile has a row of the shard's logits for each token");
}

}  // namespace

at::Tensor shard_statistics(const at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard) {
  const KernelTimer timer(Kernel::Loss, memory_work(logits));
  check_tile(logits, targets, shard);
  at::Tensor statistics =
      at::empty({3, targets.numel()}, logits.options().dtype(accumulator_type(logits.scalar_type())));
  statistics_of_rows(logits, targets, shard, statistics);
  return statistics;
}

void shard_gradient(at::Tensor& logits, const at::Tensor& targets, const mesh::Shard& shard,
                    const at::Tensor& scale, double gradient_scale) {
  const KernelTimer timer(Kernel::Loss, memory_work(logits, logits));
  check_tile(logits, targets, shard);
  gradient_of_rows(logits, targets, shard, scale, gradient_scale);
}

}  // namespace penstock::nn::kernels
