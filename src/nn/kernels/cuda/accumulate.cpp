// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/accumulate.h"

#include "nn/kernels/cuda/rows/sums.h"
#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

template <class Element>
void add_all(const at::Tensor& sum, const at::Tensor& part) {
  with_packs<Element>({flat(sum), flat(part)}, [&](auto width) {
    using Chunks = AddChunks<Element, width>;
    const std::int64_t packs = part.numel() / width;
    launch(Chunks{write<Accumulator<Element>>(sum), read<Element>(part), packs},
           parts_of(packs, Chunks::kChunk));
  });
}

template <class Element>
void add_rows(const at::Tensor& sum, const at::Tensor& part) {
  check_head_rows(sum);
  check_head_rows(part);
  const std::int64_t rows = sum.numel() / sum.size(3);
  with_packs<Element>({sum, part}, [&](auto width) {
    launch(AddHeadRows<Element, width>{heads_of<Accumulator<Element>>(sum), heads_of<const Element>(part),
                                       rows, sum.size(3)},
           parts_of(rows, kRowsAtOnce));
  });
}

}  // namespace

void accumulate(at::Tensor& sum, const at::Tensor& part) {
  const KernelTimer timer(Kernel::Accumulate, memory_work(sum, sum, part));
  PENSTOCK_CHECK(sum.sizes() == part.sizes(), "a part has the shape of its sum");
  for_element_type(part.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    if (sum.is_contiguous() && part.is_contiguous()) return add_all<Element>(sum, part);
    add_rows<Element>(sum, part);
  });
}

}  // namespace penstock::nn::kernels
