// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/merge.h"

#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

void merge(AttentionPart& total, const AttentionPart& part) { merge_at(total, 0, part); }

void merge_at(AttentionPart& total, std::int64_t first, const AttentionPart& part) {
  const KernelTimer timer(Kernel::Merge, memory_work(part.output, part.output, part.output));
  check_head_rows(total.output);
  check_head_rows(part.output);
  PENSTOCK_CHECK(total.log_sum_exp.is_contiguous() && part.log_sum_exp.is_contiguous(),
                 "one value a row, in order");
  const at::Tensor joined = total.output.narrow(2, first, part.output.size(2));
  for_element_type(part.output.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({joined, part.output}, [&](auto width) {
      launch(MergeRows<Element, width>{heads_of<Number>(joined), write<Number>(total.log_sum_exp) + first,
                                       total.output.size(2), heads_of<const Element>(part.output),
                                       read<Number>(part.log_sum_exp), part.output.size(3)},
             part.log_sum_exp.numel());
    });
  });
}

}  // namespace penstock::nn::kernels
