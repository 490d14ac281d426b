// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/merge.h"

#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

void merge_rows(AttentionPart& total, std::int64_t first, const AttentionPart& part) {
  const at::Tensor joined = total.output.narrow(2, first, part.output.size(2));
  for_element_type(part.output.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({joined, part.output}, [&](auto width) {
      launch(MergeRows<Element, width>{heads_of<Number>(joined), write<Number>(total.log_sum_exp) + first,
                                       total.output.size(2), heads_of<const Element>(part.output),
                                       read<Number>(part.log_sum_exp), part.log_sum_exp.numel(),
                                       part.output.size(3)},
             parts_of(part.log_sum_exp.numel(), kRowsAtOnce));
    });
  });
}

}  // namespace penstock::nn::kernels
