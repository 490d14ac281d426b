// SPDX-License-Identifier: Apache-2.0
// Norm, rotation, gate and exponential against the plain formulas in f64, for every compute type.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "nn/kernels/cpu/exponential.h"
#include "nn/kernels/cpu/softmax_row.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/swiglu.h"
#include "nn/reference_model.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

namespace kernels = nn::kernels;

TEST(Exponential, IsWithinTwoUnitsInTheLastPlace) {
  for (double x = -86.9; x < 87.9; x += 0.00037) {
    const float rounded = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(rounded));
    EXPECT_NEAR(kernels::exponential(rounded) / exact, 1.0, 2 * 1.2e-7) << rounded;
  }
  EXPECT_EQ(kernels::exponential(0.0f), 1.0f);
  EXPECT_LT(kernels::exponential(-1000.0f), 2e-38f);
  EXPECT_TRUE(std::isnan(kernels::exponential(NAN)));
  for (double x = -125; x <= 126; x += 0.00137) {
    const auto rounded = static_cast<float>(x);
    const double exact = std::exp2(static_cast<double>(rounded));
    EXPECT_NEAR(kernels::power_of_two(rounded) / exact, 1.0, 2 * 1.2e-7) << rounded;
  }
  EXPECT_EQ(kernels::power_of_two(0.0f), 1.0f);
  EXPECT_LT(kernels::power_of_two(-1000.0f), 3e-38f);
  EXPECT_TRUE(std::isnan(kernels::power_of_two(NAN)));
}

template <class Element>
void expect_greatest() {
  using Number = kernels::Accumulator<Element>;
  constexpr Number kInfinity = std::numeric_limits<Number>::infinity();
  const auto greatest_of = [](std::vector<Number> values) {
    const std::vector<Element> row(values.begin(), values.end());
    return kernels::greatest_of(row.data(), static_cast<std::int64_t>(row.size()));
  };
  EXPECT_EQ(greatest_of({}), -kInfinity);
  EXPECT_EQ(greatest_of({1, 3, 2}), 3);
  EXPECT_EQ(greatest_of({-1, 0.5, -3}), Number(0.5));
  EXPECT_EQ(greatest_of({-4, -0.25, -2}), Number(-0.25));
  EXPECT_EQ(greatest_of({-kInfinity, -8, -kInfinity}), -8);
  EXPECT_EQ(greatest_of({-kInfinity, -kInfinity}), -kInfinity);
  EXPECT_EQ(greatest_of({-1, kInfinity, 2}), kInfinity);
  for (const Number zero : {Number(0), -Number(0)}) EXPECT_EQ(greatest_of({-1, zero, -2}), 0);
  for (const Number sign : {Number(1), Number(-1)}) {
    const Number nan = std::copysign(std::numeric_limits<Number>::quiet_NaN(), sign);
    std::vector<Number> row(70, Number(-2));
    for (const Number other : {Number(-2), Number(5), kInfinity, -kInfinity}) {
      row[3] = other;
      for (const std::size_t place : {0, 17, 69}) {
        const Number before = std::exchange(row[place], nan);
        EXPECT_TRUE(std::isnan(greatest_of(row))) << sign << " at " << place;
        row[place] = before;
      }
    }
  }
}

TEST(Softmax, KnowsTheGreatestLogitOfEveryRow) {
  expect_greatest<c10::BFloat16>();
  expect_greatest<float>();
  expect_greatest<double>();
}

TEST(RmsNorm, OutputAndGradientsEqualAutograd) {
  for (const at::ScalarType type : kComputeTypes) {
    for (const auto& [rows, h] : {std::pair{1, 1}, {2, 5}, {7, 64}, {128, 96}, {33, 130}}) {
      const at::Tensor x = random_tensor({rows, h}, type, 1), weight = random_tensor({h}, type, 2);
      const at::Tensor grad = random_tensor({rows, h}, type, 3), residual = random_tensor({rows, h}, type, 4);
      const auto got = kernels::rms_norm(x, weight, 1e-5);
      at::Tensor grad_weight = random_tensor({h}, got.scale.scalar_type(), 5), before = grad_weight.clone();
      const at::Tensor grad_x = kernels::rms_norm_backward(grad, x, weight, got.scale, residual, grad_weight);

      const at::Tensor exact_x = leaf(x), exact_weight = leaf(weight);
      const at::Tensor wanted = reference::rms_norm(exact_x, exact_weight, 1e-5);
      const auto gradients = torch::autograd::grad({wanted}, {exact_x, exact_weight}, {grad.to(at::kDouble)});
      const double tolerance = tolerance_of(type);
      expect_near(got.output, wanted, tolerance, "output");
      expect_near(grad_x, gradients[0] + residual.to(at::kDouble), tolerance, "input's gradient");
      // The sums run over rows in the accumulator type whatever the compute type.
      expect_near(grad_weight, gradients[1] + before.to(at::kDouble), std::min(tolerance, 1e-5), "weight's");
    }
  }
}

TEST(RmsNorm, OfASumHasTheBitsOfTheSumAndItsNorm) {
  for (const at::ScalarType type : kComputeTypes) {
    for (const auto& [rows, h] : {std::pair{1, 1}, {3, 5}, {64, 130}}) {
      const at::Tensor x = random_tensor({rows, h}, type, 1), branch = random_tensor({rows, h}, type, 2);
      const at::Tensor weight = random_tensor({h}, type, 3);
      at::Tensor sum;
      const auto got = kernels::rms_norm_of_sum(x, branch, weight, 1e-5, sum);
      const auto wanted = kernels::rms_norm(x + branch, weight, 1e-5);
      expect_same_bits(sum, x + branch, "sum");
      expect_same_bits(got.output, wanted.output, "output");
      expect_same_bits(got.scale, wanted.scale, "scale");
    }
  }
}

TEST(RmsNorm, BitsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor x = random_tensor({700, 96}, at::kFloat, 1), weight = random_tensor({96}, at::kFloat, 2);
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    const auto normed = kernels::rms_norm(x, weight, 1e-5);
    at::Tensor grad_weight = random_tensor({96}, at::kFloat, 3);
    const at::Tensor grad = kernels::rms_norm_backward(x, x, weight, normed.scale, {}, grad_weight);
    return std::vector{normed.output, grad, grad_weight};
  };
  const auto one = run(1), two = run(2);
  at::set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i], std::to_string(i));
}

TEST(Rope, TurnsAsHuggingFaceDoesAndBack) {
  for (const double factor : {1.0, 8.0}) {
    model::Shape shape{.hidden = 48, .heads = 3, .kv_heads = 3};
    shape.rope_scaling = {.factor = factor, .original_positions = 64};
    for (const at::ScalarType type : kComputeTypes) {
      const auto table = kernels::rotary_table(shape, 20, type);
      const at::Tensor x = random_tensor({2, 9, 48}, type, 1);
      const at::Tensor got = kernels::rope(x, table, 3, 11);
      // The oracle turns whole sequences from position 0: eleven rows in front, cut off again.
      const at::Tensor padded = at::cat({at::zeros({2, 11, 48}, at::kDouble), x.to(at::kDouble)}, 1);
      const at::Tensor wanted =
          reference::rotate(padded.view({2, 20, 3, 16}).transpose(1, 2), shape).narrow(2, 11, 9);
      expect_near(got, wanted, tolerance_of(type), "turned");
      const at::Tensor back = kernels::rope_backward(got, table, 11, type);
      expect_near(back, x.view({18, 48}), 2 * tolerance_of(type), "a rotation's transpose is its inverse");
    }
  }
}

TEST(Rope, ReadsAccumulatorsOfAnyStrides) {
  const model::Shape shape{.hidden = 32, .heads = 4, .kv_heads = 4};
  const auto table = kernels::rotary_table(shape, 6, at::kBFloat16);
  const at::Tensor strided = random_tensor({2, 6, 4, 8}, at::kFloat, 1).transpose(1, 2);
  expect_same_bits(kernels::rope_backward(strided, table, 0, at::kBFloat16),
                   kernels::rope_backward(strided.contiguous(), table, 0, at::kBFloat16), "strides");
}

TEST(Swiglu, OutputAndGradientsEqualAutograd) {
  for (const at::ScalarType type : kComputeTypes) {
    const at::Tensor gate = random_tensor({17, 43}, type, 1).mul(4), up = random_tensor({17, 43}, type, 2);
    const at::Tensor grad = random_tensor({17, 43}, type, 3);
    at::Tensor room = grad.clone(), of_gate = gate.clone(), of_up = up.clone(), product;
    const void* place = room.const_data_ptr();
    kernels::swiglu_backward(room, of_gate, of_up, product);
    expect_same_bits(product, kernels::swiglu(gate, up), "the product formed beside the gradients");
    EXPECT_TRUE(product.const_data_ptr() == place && !room.defined()) << "takes the gradient's place";
    const at::Tensor exact_gate = leaf(gate), exact_up = leaf(up);
    const at::Tensor wanted = at::silu(exact_gate) * exact_up;
    const auto exact = torch::autograd::grad({wanted}, {exact_gate, exact_up}, {grad.to(at::kDouble)});
    expect_near(kernels::swiglu(gate, up), wanted, tolerance_of(type), "output");
    expect_near(of_gate, exact[0], tolerance_of(type), "gate");
    expect_near(of_up, exact[1], tolerance_of(type), "up");
  }
}

}  // namespace
}  // namespace penstock::testing
