// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sum_parts.h"

#include <vector>

#include "nn/kernels/cuda/rows/sums.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

template <class Element, class Result>
void sum_all(std::span<const at::Tensor> parts, const at::Tensor& result) {
  using Narrower = std::conditional_t<sizeof(Result) < sizeof(Element), Result, Element>;
  constexpr std::int64_t kPack = kFullPack<Narrower>;
  const auto sum = [&](auto width) {
    using Chunks = SumChunks<Element, Result, width>;
    Chunks chunks{.parts = {},
                  .count = static_cast<int>(parts.size()),
                  .output = write<Result>(result),
                  .packs = result.numel() / width};
    for (std::size_t i = 0; i < parts.size(); ++i) chunks.parts[i] = read<Element>(parts[i]);
    launch(chunks, parts_of(chunks.packs, Chunks::kChunk));
  };
  const auto whole = [](const at::Tensor& x) { return in_whole_packs(flat(x), kPack); };
  if (whole(result) && std::ranges::all_of(parts, whole)) return sum(std::integral_constant<int, kPack>{});
  sum(std::integral_constant<int, 1>{});
}

}  // namespace

void add_placed_rows(const at::Tensor& rows, const at::Tensor& places, const at::Tensor& beside,
                     at::Tensor& result) {
  for_element_type(rows.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    with_packs<Element>({rows, beside, result}, [&](auto width) {
      launch(PlacedRows<Element, width>{read<Element>(rows), read<std::int64_t>(places),
                                        read<Accumulator<Element>>(beside), write<Element>(result),
                                        places.size(1), rows.size(1) / width},
             places.size(0));
    });
  });
}

void add_parts(std::span<const at::Tensor> parts, at::Tensor& result) {
  PENSTOCK_CHECK(parts.size() <= kMostParts, "a sum has at most 64 parts");
  for_sum_types(parts.front().scalar_type(), result.scalar_type(),
                [&](auto part, auto sum) { sum_all<decltype(part), decltype(sum)>(parts, result); });
}

}  // namespace penstock::nn::kernels
