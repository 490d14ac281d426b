// SPDX-License-Identifier: Apache-2.0
// The kernels that arithmetic bounds, on one thread: operations per second of products and attention, ours
// beside ATen's. Sizes are those of the standard size S (2,048 tokens, hidden 512, ffn 1,376). What memory
// bounds is in elementwise_benchmark.cpp.
//
//   build/release/bin/kernels_benchmark --benchmark_filter=attention
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "backend/memory.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/tiled_products.h"
#include "nn/kernels/matmul.h"

namespace penstock::nn::kernels {
namespace {

constexpr std::int64_t kTokens = 2048, kHidden = 512, kFeedForward = 1376, kHeads = 8;

at::Tensor rows(std::int64_t width, at::ScalarType type, std::int64_t count = kTokens) {
  return at::randn({count, width}).to(type);
}

template <class Work>
void measure_flops(benchmark::State& state, double flops, Work&& work) {
  at::set_num_threads(1);
  backend::install_allocator();
  for (auto _ : state) work();
  state.counters["flops_per_second"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void weight_gradient(benchmark::State& state, Bf16Products products) {
  if (products == Bf16Products::Tiled && !has_tile_products(at::kBFloat16))
    return state.SkipWithError("this processor does not multiply tiles of bf16");
  const at::Tensor grad_output = rows(kFeedForward, at::kBFloat16), x = rows(kHidden, at::kBFloat16);
  at::Tensor grad = at::zeros({kFeedForward, kHidden});
  measure_flops(state, 2.0 * kTokens * kFeedForward * kHidden,
                [&] { accumulate_weight_gradient(grad, grad_output, x, products); });
}
BENCHMARK_CAPTURE(weight_gradient, tiled, Bf16Products::Tiled)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(weight_gradient, native, Bf16Products::Native)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(weight_gradient, mkl, Bf16Products::Summed)->Unit(benchmark::kMicrosecond);

// The rate that all others are held against.
void square_product(benchmark::State& state, at::ScalarType type) {
  constexpr std::int64_t kSide = 2048;
  const at::Tensor x = rows(kSide, type, kSide), weight = rows(kSide, type, kSide);
  measure_flops(state, 2.0 * kSide * kSide * kSide, [&] { benchmark::DoNotOptimize(product(x, weight)); });
}
BENCHMARK_CAPTURE(square_product, f32, at::kFloat)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(square_product, bf16, at::kBFloat16)->Unit(benchmark::kMicrosecond);

struct AttentionSize {
  at::ScalarType type;
  AttentionKernel kernel;
};
void attention(benchmark::State& state, AttentionSize size, bool gradient) {
  const auto heads = [&] { return at::randn({1, kHeads, kTokens, kHidden / kHeads}).to(size.type); };
  const at::Tensor query = heads(), key = heads(), value = heads(), grad = heads();
  const auto forward = [&] { return attend(query, key, value, Mask::Causal, size.kernel); };
  const double flops = 2.0 * kTokens * kTokens * kHidden * (gradient ? 2 : 1);  // causal half
  const AttentionPart merged = forward();
  const AttentionPart rounded{merged.output.to(size.type), merged.log_sum_exp};
  measure_flops(state, flops, [&] {
    if (!gradient) return benchmark::DoNotOptimize(forward());
    benchmark::DoNotOptimize(attend_backward(grad, query, key, value, rounded, Mask::Causal, size.kernel));
  });
}
constexpr AttentionSize kTiledF32{at::kFloat, AttentionKernel::Tiled};
constexpr AttentionSize kTiledBf16{at::kBFloat16, AttentionKernel::Tiled};
constexpr AttentionSize kAtenF32{at::kFloat, AttentionKernel::Aten};
constexpr AttentionSize kAtenBf16{at::kBFloat16, AttentionKernel::Aten};
BENCHMARK_CAPTURE(attention, tiled_f32, kTiledF32, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, aten_f32, kAtenF32, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, tiled_bf16, kTiledBf16, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, aten_bf16, kAtenBf16, false)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, backward_tiled_f32, kTiledF32, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, backward_aten_f32, kAtenF32, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, backward_tiled_bf16, kTiledBf16, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(attention, backward_aten_bf16, kAtenBf16, true)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace penstock::nn::kernels
