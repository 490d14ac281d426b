// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/square_sum.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "mesh/shard.h"
#include "nn/kernels/cuda/rows/squares.h"
#include "nn/kernels/cuda/tensors.h"

namespace penstock::nn::kernels {

using namespace cuda;

namespace {

// Waits for the card.
template <class Number>
ExactSum sum_of_parts(const at::Tensor& x) {
  using Parts = SquareParts<Number>;
  static_assert(Parts::kUnit == mesh::kShareUnit && Parts::kLimbs == ExactSum::kLimbs);
  constexpr std::int64_t kMostParts = 1024;
  const std::int64_t parts =
      std::clamp<std::int64_t>(parts_of(x.numel(), Parts::kUnit * kBlock), 1, kMostParts);
  at::Tensor words = at::empty({parts, Parts::kWords}, x.options().dtype(at::kLong));
  launch(Parts{read<Number>(x), reinterpret_cast<unsigned long long*>(write<std::int64_t>(words)), x.numel(),
               parts},
         parts);
  words = words.cpu();
  ExactSum sum;
  for (std::int64_t part = 0; part < parts; ++part) {
    ExactSum::Words of_part;
    std::copy_n(words.const_data_ptr<std::int64_t>() + part * Parts::kWords, of_part.size(), of_part.begin());
    sum.add(ExactSum::of(of_part));
  }
  return sum;
}

}  // namespace

ExactSum square_sum(const at::Tensor& x) {
  PENSTOCK_CHECK(x.is_contiguous(), "gradients are contiguous");
  return x.scalar_type() == at::kDouble ? sum_of_parts<double>(x) : sum_of_parts<float>(x);
}

}  // namespace penstock::nn::kernels
