// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/merge.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

AttentionPart no_attention(at::IntArrayRef sizes, const at::Tensor& like) {
  const auto options = like.options().dtype(accumulator_type(like.scalar_type()));
  return {at::zeros(sizes, options),
          at::full(sizes.slice(0, 3), -std::numeric_limits<double>::infinity(), options)};
}

void merge(AttentionPart& total, const AttentionPart& part) { merge_at(total, 0, part); }

void merge_at(AttentionPart& total, std::int64_t first, const AttentionPart& part) {
  const KernelTimer timer(Kernel::Merge, memory_work(part.output, part.output, part.output));
  check_head_rows(total.output);
  check_head_rows(part.output);
  PENSTOCK_CHECK(total.log_sum_exp.is_contiguous() && part.log_sum_exp.is_contiguous(),
                 "one value a row, in order");
  merge_rows(total, first, part);
}

}  // namespace penstock::nn::kernels
