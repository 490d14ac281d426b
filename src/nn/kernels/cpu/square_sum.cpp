// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/square_sum.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "mesh/shard.h"

namespace penstock::nn::kernels {
namespace {

constexpr std::int64_t kBlock = 1 << 14;  // minimum elements per task
constexpr std::int64_t kUnit = mesh::kShareUnit;
constexpr std::int64_t kLanes = 8;  // partial sums per unit, so that the loop vectorises

template <class T>
double unit_square_sum(const T* values, std::int64_t count) {
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

template <class T>
ExactSum tensor_square_sum(const at::Tensor& tensor) {
  const T* values = tensor.const_data_ptr<T>();
  const std::int64_t count = tensor.numel();
  ExactSum sum;
  std::mutex adding;
  at::parallel_for(0, count, kBlock, [&](std::int64_t begin, std::int64_t end) {
    const auto up = [](std::int64_t place) { return (place + kUnit - 1) / kUnit * kUnit; };
    const std::int64_t last = end == count ? end : up(end);
    ExactSum part;
    for (std::int64_t unit = up(begin); unit < last; unit += kUnit)
      part.add(unit_square_sum(values + unit, std::min(kUnit, count - unit)));
    const std::lock_guard lock(adding);
    sum.add(part);
  });
  return sum;
}

}  // namespace

ExactSum square_sum(std::span<const at::Tensor> tensors) {
  ExactSum sum;
  for (const at::Tensor& x : tensors) {
    PENSTOCK_CHECK(x.is_contiguous(), "gradients are contiguous");
    sum.add(x.scalar_type() == at::kDouble ? tensor_square_sum<double>(x) : tensor_square_sum<float>(x));
  }
  return sum;
}

}  // namespace penstock::nn::kernels
