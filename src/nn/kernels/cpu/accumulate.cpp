// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/accumulate.h"

#include "nn/kernels/cpu/element.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

template <class Number, class Element>
PENSTOCK_VECTORISED void add_row(Number* sum, const Element* part, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += Number(part[i]);
}

template <class Element>
void add_rows(at::Tensor& sum, const at::Tensor& part) {
  using Number = Accumulator<Element>;
  Number* to = sum.data_ptr<Number>();
  const Element* from = part.const_data_ptr<Element>();
  if (sum.is_contiguous() && part.is_contiguous()) {
    at::parallel_for(0, sum.numel(), rows_per_task(1), [&](std::int64_t begin, std::int64_t end) {
      add_row(to + begin, from + begin, end - begin);
    });
    return;
  }
  check_head_rows(sum);
  check_head_rows(part);
  const HeadRows rows(sum);
  const std::int64_t d = sum.size(3);
  for_rows(sum.numel() / d, d, [&](std::int64_t i) {
    const HeadRows::Row row = rows[i];
    add_row(to + row.offset(sum.strides()), from + row.offset(part.strides()), d);
  });
}

}  // namespace

void accumulate(at::Tensor& sum, const at::Tensor& part) {
  const KernelTimer timer(Kernel::Accumulate, memory_work(sum, sum, part));
  PENSTOCK_CHECK(sum.sizes() == part.sizes(), "a part has the shape of its sum");
  for_element_type(part.scalar_type(), [&](auto element) { add_rows<decltype(element)>(sum, part); });
}

}  // namespace penstock::nn::kernels
