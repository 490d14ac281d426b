// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/square_sum.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "mesh/shard.h"
#include "nn/kernels/cuda/rows/squares.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

constexpr std::int64_t kParts = 1024;

// Adds the squares of x to words [kParts, kWords].
template <class Number>
void add_squares(const at::Tensor& x, const at::Tensor& words) {
  using Scalars = SquareParts<Number, 1>;
  static_assert(Scalars::kUnit == mesh::kShareUnit && Scalars::kLimbs == ExactSum::kLimbs);
  const std::int64_t parts =
      std::clamp<std::int64_t>(parts_of(x.numel(), Scalars::kUnit * kBlock), 1, kParts);
  // The last unit may have a partial pack: the kernel reads its last elements one by one.
  constexpr std::uintptr_t kAccess = 16;
  const bool aligned = reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kAccess == 0;
  const auto add = [&](auto width) {
    launch(SquareParts<Number, width>{read<Number>(x),
                                      reinterpret_cast<unsigned long long*>(write<std::int64_t>(words)),
                                      x.numel(), parts},
           parts);
  };
  if (aligned) return add(std::integral_constant<int, kFullPack<Number>>{});
  add(std::integral_constant<int, 1>{});
}

}  // namespace

ExactSum square_sum(std::span<const at::Tensor> tensors) {
  ExactSum sum;
  if (tensors.empty()) return sum;
  constexpr std::int64_t kWords = ExactSum::kLimbs + 1;
  at::Tensor words = at::zeros({kParts, kWords}, tensors.front().options().dtype(at::kLong));
  for (const at::Tensor& x : tensors) {
    PENSTOCK_CHECK(x.is_contiguous(), "gradients are contiguous");
    x.scalar_type() == at::kDouble ? add_squares<double>(x, words) : add_squares<float>(x, words);
  }
  words = words.cpu();
  for (std::int64_t part = 0; part < kParts; ++part) {
    ExactSum::Words of_part;
    std::copy_n(words.const_data_ptr<std::int64_t>() + part * kWords, of_part.size(), of_part.begin());
    sum.add(ExactSum::of(of_part));
  }
  return sum;
}

}  // namespace penstock::nn::kernels
