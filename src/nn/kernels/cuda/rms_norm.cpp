// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rms_norm.h"

#include <ATen/ops/empty.h>

#include "nn/kernels/cuda/rows/norm.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

void norm_rows(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, double epsilon,
               at::Tensor& sum, Normed& result) {
  const std::int64_t rows = x.size(0), h = x.size(1);
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({x, branch, weight, sum, result.output}, [&](auto width) {
      launch(NormRows<Element, width>{read<Element>(x), read<Element>(branch), read<Element>(weight),
                                      write<Element>(sum), write<Element>(result.output),
                                      write<Number>(result.scale), h, Number(epsilon)},
             rows);
    });
  });
}

void norm_rows_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                        const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_input,
                        at::Tensor& grad_weight) {
  const std::int64_t rows = x.size(0), h = x.size(1);
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    using Columns = AddBlockColumns<Number>;
    const std::int64_t blocks = parts_of(rows, NormBackwardRows<Element, 1>::kRows);
    const at::Tensor weight_sums = at::empty({blocks, h}, grad_weight.options());
    with_packs<Element>({grad_output, x, weight, residual, grad_input}, [&](auto width) {
      launch(NormBackwardRows<Element, width>{read<Element>(grad_output), read<Element>(x),
                                              read<Element>(weight), read<Element>(residual),
                                              read<Number>(scale), write<Element>(grad_input),
                                              write<Number>(weight_sums), rows, h},
             blocks);
    });
    launch(Columns{read<Number>(weight_sums), write<Number>(grad_weight), blocks, h},
           parts_of(h, Columns::kColumns));
  });
}

}  // namespace penstock::nn::kernels
