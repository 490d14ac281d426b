// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/row_dots.h"

#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

void dot_rows(const at::Tensor& a, const at::Tensor& b, at::Tensor& dots) {
  for_element_type(a.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({a, b}, [&](auto width) {
      launch(DotRows<Element, width>{heads_of<const Element>(a), heads_of<const Element>(b),
                                     write<Accumulator<Element>>(dots), a.size(3)},
             dots.numel());
    });
  });
}

void rows_with_dots(const at::Tensor& x, const at::Tensor& dots, at::Tensor& result) {
  for_element_type(x.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({x, result}, [&](auto width) {
      launch(RowsWithDots<Element, width>{read<Element>(x), read<Accumulator<Element>>(dots),
                                          write<Element>(result), x.size(3)},
             dots.numel());
    });
  });
}

}  // namespace penstock::nn::kernels
