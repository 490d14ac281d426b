// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sum_parts.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

at::Tensor sum_parts(std::span<const at::Tensor> parts, at::ScalarType type) {
  PENSTOCK_CHECK(!parts.empty(), "a sum has parts");
  const at::Tensor& first = parts.front();
  for (const at::Tensor& part : parts) {
    PENSTOCK_CHECK(part.is_contiguous() && part.sizes() == first.sizes() && part.dtype() == first.dtype(),
                   "parts are alike and contiguous");
  }
  at::Tensor result = at::empty(first.sizes(), first.options().dtype(type));
  const auto bytes = static_cast<double>(parts.size() * first.nbytes() + result.nbytes());
  const KernelTimer timer(Kernel::Accumulate, {.bytes = bytes});
  add_parts(parts, result);
  return result;
}

at::Tensor sum_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside) {
  PENSTOCK_CHECK(
      rows.is_contiguous() && places.is_contiguous() && (!beside.defined() || beside.is_contiguous()),
      "kernels read contiguous rows");
  at::Tensor result = at::empty({places.size(0), rows.size(1)}, rows.options());
  const KernelTimer timer(Kernel::Combine, memory_work(rows, result));
  add_placed_rows(rows, places, beside, result);
  return result;
}

}  // namespace penstock::nn::kernels
