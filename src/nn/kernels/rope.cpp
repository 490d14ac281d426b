// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rope.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "backend/device.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/head_rows.h"
#include "nn/kernels/work.h"

namespace penstock::nn::kernels {
namespace {

// Divides frequencies with long waves by the factor, keeps those with short waves and blends those in
// between; lengths are relative to the original context.
double scaled_frequency(double frequency, const model::RopeScaling& scaling) {
  if (scaling.factor == 1.0) return frequency;
  const double turns = static_cast<double>(scaling.original_positions) * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_frequency_factor) return frequency / scaling.factor;
  if (turns > scaling.high_frequency_factor) return frequency;
  const double smooth =
      (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

std::vector<double> frequencies(const model::Shape& shape) {
  const std::int64_t half = shape.head_dim() / 2;
  std::vector<double> result;
  for (std::int64_t i = 0; i < half; ++i) {
    const double plain = std::pow(shape.rope_theta, -static_cast<double>(i) / static_cast<double>(half));
    result.push_back(scaled_frequency(plain, shape.rope_scaling));
  }
  return result;
}

}  // namespace

RotaryTable rotary_table(const model::Shape& shape, std::int64_t positions, at::ScalarType type) {
  const std::vector<double> frequency = frequencies(shape);
  const auto half = static_cast<std::int64_t>(frequency.size());
  const auto options = at::TensorOptions().dtype(accumulator_type(type));
  RotaryTable table{at::empty({positions, half}, options), at::empty({positions, half}, options)};
  for_element_type(options.dtype().toScalarType(), [&](auto element) {
    using Element = decltype(element);
    Element* cosine = table.cosine.data_ptr<Element>();
    Element* sine = table.sine.data_ptr<Element>();
    at::parallel_for(0, positions * half, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const double angle = static_cast<double>(i / half) * frequency[i % half];
        cosine[i] = static_cast<Element>(std::cos(angle));
        sine[i] = static_cast<Element>(std::sin(angle));
      }
    });
  });
  return {backend::to_device(table.cosine), backend::to_device(table.sine)};
}

at::Tensor rope(const at::Tensor& x, const RotaryTable& table, std::int64_t heads,
                const Positions& positions) {
  const KernelTimer timer(Kernel::Rotation, memory_work(x, x));
  PENSTOCK_CHECK(x.size(1) == 0 || positions.of(x.size(1) - 1) < table.cosine.size(0),
                 "the rotary table ends before these positions");
  const std::int64_t b = x.size(0), tokens = x.size(1), d = x.size(2) / heads;
  at::Tensor result = at::empty({b, heads, tokens, d}, x.options());
  turn(x.view({b, tokens, heads, d}).transpose(1, 2), table, positions, 1.0, result);
  return result;
}

at::Tensor rope_backward(const at::Tensor& grad, const RotaryTable& table, const Positions& positions,
                         at::ScalarType type) {
  const KernelTimer timer(Kernel::RotationBackward, memory_work(grad, grad));
  check_head_rows(grad);
  const std::int64_t b = grad.size(0), heads = grad.size(1), tokens = grad.size(2), d = grad.size(3);
  at::Tensor result = at::empty({b * tokens, heads * d}, grad.options().dtype(type));
  at::Tensor rows = result.view({b, tokens, heads, d}).transpose(1, 2);
  turn(grad, table, positions, -1.0, rows);
  return result;
}

}  // namespace penstock::nn::kernels
