// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/sum_parts.h"

#include <ATen/ops/empty.h>

#include <vector>

#include "nn/kernels/cuda/rows/sums.h"
#include "nn/kernels/cuda/tensors.h"
#include "nn/kernels/work.h"

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

at::Tensor sum_parts(std::span<const at::Tensor> parts, at::ScalarType type) {
  PENSTOCK_CHECK(!parts.empty() && parts.size() <= kMostParts, "a sum has 1 to 64 parts");
  const at::Tensor& first = parts.front();
  for (const at::Tensor& part : parts) {
    PENSTOCK_CHECK(part.is_contiguous() && part.sizes() == first.sizes() && part.dtype() == first.dtype(),
                   "parts are alike and contiguous");
  }
  at::Tensor result = at::empty(first.sizes(), first.options().dtype(type));
  const auto bytes = static_cast<double>(parts.size() * first.nbytes() + result.nbytes());
  const KernelTimer timer(Kernel::Accumulate, {.bytes = bytes});
  for_element_type(first.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    if (type == first.scalar_type()) return sum_all<Element, Element>(parts, result);
    PENSTOCK_CHECK(type == accumulator_type(first.scalar_type()) || type == at::kBFloat16,
                   "sums have the parts' type, its accumulator type, or the narrow one");
    if constexpr (std::is_same_v<Element, float>) {
      sum_all<float, c10::BFloat16>(parts, result);
    } else {
      sum_all<Element, Accumulator<Element>>(parts, result);
    }
  });
  return result;
}

}  // namespace penstock::nn::kernels
