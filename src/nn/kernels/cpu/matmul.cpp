// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/matmul.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "base/error.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cpu/f32_products.h"
#include "nn/kernels/cpu/tiled_products.h"
#include "nn/kernels/work.h"

// Exported by libtorch_cpu, which links MKL's interface with 32-bit integers.
extern "C" void cblas_gemm_bf16bf16f32(int layout, int transpose_a, int transpose_b, int m, int n, int k,
                                       float alpha, const std::uint16_t* a, int lda, const std::uint16_t* b,
                                       int ldb, float beta, float* c, int ldc);

namespace penstock::nn::kernels {
namespace {

Bf16Products choose_bf16_products() {
  __builtin_cpu_init();
  if (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx512bf16")) return Bf16Products::Summed;
  if (has_tile_products(at::kBFloat16)) return Bf16Products::Tiled;
  // oneDNN's requirements for bf16 products.
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return wide ? Bf16Products::Native : Bf16Products::Widened;
}

bool widened(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && fastest_bf16_products() == Bf16Products::Widened;
}

bool by_tiles(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b) {
  const auto fits = [](const at::Tensor& side) { return side.stride(0) == 1 || side.stride(1) == 1; };
  return a.scalar_type() == at::kFloat && f32_is_faster_by_tiles() && result.stride(1) == 1 && fits(a) &&
         fits(b);
}

// result = a · b, or += if `adds`.
void multiply_into(at::Tensor& result, const at::Tensor& a, const at::Tensor& b, bool adds = false) {
  if (by_tiles(result, a, b)) {
    multiply_by_tiles(result, a, b, adds);
  } else if (adds) {
    at::addmm_out(result, result, a, b);
  } else {
    at::mm_out(result, a, b);
  }
}

at::Tensor plain_product(const at::Tensor& a, const at::Tensor& b) {
  if (!widened(a)) {
    at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
    multiply_into(result, a, b);
    return result;
  }
  return at::mm(a.to(at::kFloat), b.to(at::kFloat)).to(at::kBFloat16);
}

void accumulate_with_mkl(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  const int tokens = static_cast<int>(x.size(0)), in = static_cast<int>(x.size(1));
  const int out = static_cast<int>(grad_output.size(1));
  const auto* dy = static_cast<const std::uint16_t*>(grad_output.const_data_ptr());
  const auto* input = static_cast<const std::uint16_t*>(x.const_data_ptr());
  cblas_gemm_bf16bf16f32(kRowMajor, kTransposed, kPlain, out, in, tokens, 1.0f, dy, out, input, in, 1.0f,
                         grad.data_ptr<float>(), in);
}

// [N, out] · [out, in] with f32 sums.
at::Tensor wide_product_with_mkl(const at::Tensor& a, const at::Tensor& b) {
  constexpr int kRowMajor = 101, kPlain = 111;
  const int rows = static_cast<int>(a.size(0)), inner = static_cast<int>(a.size(1));
  const int columns = static_cast<int>(b.size(1));
  at::Tensor result = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
  cblas_gemm_bf16bf16f32(kRowMajor, kPlain, kPlain, rows, columns, inner, 1.0f,
                         static_cast<const std::uint16_t*>(a.const_data_ptr()), inner,
                         static_cast<const std::uint16_t*>(b.const_data_ptr()), columns, 0.0f,
                         result.data_ptr<float>(), columns);
  return result;
}

}  // namespace

Bf16Products fastest_bf16_products() {
  static const Bf16Products choice = choose_bf16_products();
  return choice;
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::Product, product_work(x.size(0), x.size(1), weight.size(0)));
  return plain_product(x, weight.t());
}

void product_into(at::Tensor& result, const at::Tensor& x, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::Product, product_work(x.size(0), x.size(1), weight.size(0)));
  if (widened(x)) {
    result.copy_(at::mm(x.to(at::kFloat), weight.t().to(at::kFloat)));
  } else {
    multiply_into(result, x, weight.t());
  }
}

at::Tensor product_backward(const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  return plain_product(grad_output, weight);
}

void product_backward_into(at::Tensor& result, const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  if (widened(grad_output)) {
    result.copy_(at::mm(grad_output.to(at::kFloat), weight.to(at::kFloat)));
  } else {
    multiply_into(result, grad_output, weight);
  }
}

at::Tensor product_backward_wide(const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  if (grad_output.scalar_type() != at::kBFloat16) return plain_product(grad_output, weight);
  PENSTOCK_CHECK(grad_output.is_contiguous() && weight.is_contiguous(), "products read rows");
  if (fastest_bf16_products() == Bf16Products::Summed) return wide_product_with_mkl(grad_output, weight);
  if (widened(grad_output)) return at::mm(grad_output.to(at::kFloat), weight.to(at::kFloat));
  return at::mm(grad_output, weight).to(at::kFloat);
}

void add_product_backward(at::Tensor& sum, const at::Tensor& grad_output, const at::Tensor& weight) {
  const KernelTimer timer(Kernel::ProductBackward,
                          product_work(grad_output.size(0), weight.size(0), weight.size(1)));
  if (widened(sum)) {
    at::Tensor wide = sum.to(at::kFloat);
    at::addmm_out(wide, wide, grad_output.to(at::kFloat), weight.to(at::kFloat));
    sum.copy_(wide);
  } else {
    multiply_into(sum, grad_output, weight, /*adds=*/true);
  }
}

void accumulate_weight_gradient(at::Tensor& grad, const at::Tensor& grad_output, const at::Tensor& x,
                                Bf16Products products) {
  PENSTOCK_CHECK(grad.is_contiguous() && grad_output.is_contiguous() && x.is_contiguous(),
                 "products read rows");
  const KernelTimer timer(Kernel::WeightGradient, product_work(grad.size(0), x.size(0), grad.size(1)));
  if (x.scalar_type() != at::kBFloat16) {
    multiply_into(grad, grad_output.t(), x, /*adds=*/true);
  } else if (products == Bf16Products::Summed) {
    accumulate_with_mkl(grad, grad_output, x);
  } else if (products == Bf16Products::Tiled) {
    accumulate_by_tiles(grad, grad_output, x);
  } else if (products == Bf16Products::Native) {
    accumulate(grad, at::mm(grad_output.t(), x));
  } else {
    at::addmm_out(grad, grad, grad_output.to(at::kFloat).t(), x.to(at::kFloat));
  }
}

}  // namespace penstock::nn::kernels
