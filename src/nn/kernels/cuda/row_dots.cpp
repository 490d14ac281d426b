// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/row_dots.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

at::Tensor row_dots(const at::Tensor& a, const at::Tensor& b) {
  const KernelTimer timer(Kernel::AttentionBackward, memory_work(a, b));
  check_head_rows(a);
  check_head_rows(b);
  PENSTOCK_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), "rows are multiplied one to one");
  at::Tensor dots =
      at::empty({a.size(0), a.size(1), a.size(2), 1}, a.options().dtype(accumulator_type(a.scalar_type())));
  for_element_type(a.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({a, b}, [&](auto width) {
      launch(DotRows<Element, width>{heads_of<const Element>(a), heads_of<const Element>(b),
                                     write<Accumulator<Element>>(dots), a.size(3)},
             dots.numel());
    });
  });
  return dots;
}

at::Tensor with_row_dots(const at::Tensor& x, const at::Tensor& dots) {
  const KernelTimer timer(Kernel::AttentionBackward, memory_work(x, x));
  PENSTOCK_CHECK(x.is_contiguous() && dots.is_contiguous(), "kernels read contiguous rows");
  at::Tensor result = at::empty_like(x);
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({x, result}, [&](auto width) {
      launch(RowsWithDots<Element, width>{read<Element>(x), read<Accumulator<Element>>(dots),
                                          write<Element>(result), x.size(3)},
             dots.numel());
    });
  });
  return result;
}

}  // namespace penstock::nn::kernels
