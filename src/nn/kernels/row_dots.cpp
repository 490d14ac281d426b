// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/row_dots.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

at::Tensor row_dots(const at::Tensor& a, const at::Tensor& b) {
  const KernelTimer timer(Kernel::AttentionBackward, memory_work(a, b));
  check_head_rows(a);
  check_head_rows(b);
  PENSTOCK_CHECK(a.sizes() == b.sizes() && a.dtype() == b.dtype(), "rows are multiplied one to one");
  at::Tensor dots =
      at::empty({a.size(0), a.size(1), a.size(2), 1}, a.options().dtype(accumulator_type(a.scalar_type())));
  dot_rows(a, b, dots);
  return dots;
}

at::Tensor with_row_dots(const at::Tensor& x, const at::Tensor& dots) {
  const KernelTimer timer(Kernel::AttentionBackward, memory_work(x, x));
  PENSTOCK_CHECK(x.is_contiguous() && dots.is_contiguous(), "kernels read contiguous rows");
  at::Tensor result = at::empty_like(x);
  rows_with_dots(x, dots, result);
  return result;
}

}  // namespace penstock::nn::kernels
