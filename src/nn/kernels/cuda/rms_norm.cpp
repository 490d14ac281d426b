// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "nn/kernels/cuda/rows/norm.h"
#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

Normed rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  at::Tensor sum;
  return rms_norm_of_sum(x, {}, weight, epsilon, sum);
}

Normed rms_norm_of_sum(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                       double epsilon, at::Tensor& sum) {
  const KernelTimer timer(Kernel::Norm, memory_work(x, branch, branch, x));
  PENSTOCK_CHECK(x.dim() == 2 && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!branch.defined() || (branch.is_contiguous() && branch.sizes() == x.sizes()),
                 "kernels read contiguous rows");
  if (branch.defined()) sum = at::empty_like(x);
  const std::int64_t rows = x.size(0), h = x.size(1);
  const Normed result{at::empty_like(x),
                      at::empty({rows}, x.options().dtype(accumulator_type(x.scalar_type())))};
  const at::Tensor kept = branch.defined() ? sum : at::Tensor();
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Number = Accumulator<Element>;
    with_packs<Element>({x, branch, weight, kept, result.output}, [&](auto width) {
      launch(NormRows<Element, width>{read<Element>(x), read<Element>(branch), read<Element>(weight),
                                      write<Element>(kept), write<Element>(result.output),
                                      write<Number>(result.scale), h, Number(epsilon)},
             rows);
    });
  });
  return result;
}

at::Tensor rms_norm_backward(const at::Tensor& grad_output, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& scale, const at::Tensor& residual, at::Tensor& grad_weight) {
  const KernelTimer timer(Kernel::NormBackward, memory_work(grad_output, x, residual, x));
  PENSTOCK_CHECK(grad_output.is_contiguous() && x.is_contiguous(), "kernels read contiguous rows");
  PENSTOCK_CHECK(!residual.defined() || residual.is_contiguous(), "kernels read contiguous rows");
  const std::int64_t rows = x.size(0), h = x.size(1);
  at::Tensor grad_input = at::empty_like(x);
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
  return grad_input;
}

}  // namespace penstock::nn::kernels
