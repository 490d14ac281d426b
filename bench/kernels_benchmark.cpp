// SPDX-License-Identifier: Apache-2.0
// The kernels on one thread: gigabytes read and written per second of those that memory bounds, beside a copy
// of the same size; operations per second of products and attention, ours beside ATen's. Sizes are those of
// the standard size S (2,048 tokens, hidden 512, ffn 1,376, vocabulary 8,192).
//
//   build/release/bin/kernels_benchmark --benchmark_filter=swiglu
#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/swiglu.h"
#include "nn/memory/allocator.h"

namespace penstock::nn::kernels {
namespace {

constexpr std::int64_t kTokens = 2048, kHidden = 512, kFeedForward = 1376, kHeads = 8, kVocabulary = 8192;

// Work over tensors of one type; `moved` are the bytes that one call reads and writes at least.
template <class Work>
void measure(benchmark::State& state, double moved, Work&& work) {
  at::set_num_threads(1);
  install_allocator();
  for (auto _ : state) work();
  state.counters["bytes_per_second"] =
      benchmark::Counter(moved, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

double bytes(std::initializer_list<at::Tensor> tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors) sum += static_cast<double>(tensor.nbytes());
  return sum;
}

at::Tensor rows(std::int64_t width, at::ScalarType type, std::int64_t count = kTokens) {
  return at::randn({count, width}).to(type);
}

void copy(benchmark::State& state, at::ScalarType type) {
  const at::Tensor from = rows(kFeedForward, type);
  at::Tensor to = at::empty_like(from);
  measure(state, bytes({from, to}), [&] { to.copy_(from); });
}

void swiglu_forward(benchmark::State& state, at::ScalarType type) {
  const at::Tensor gate = rows(kFeedForward, type), up = rows(kFeedForward, type);
  measure(state, bytes({gate, up, gate}), [&] { benchmark::DoNotOptimize(swiglu(gate, up)); });
}

void swiglu_gradient(benchmark::State& state, at::ScalarType type) {
  const at::Tensor gate = rows(kFeedForward, type), up = rows(kFeedForward, type),
                   grad = rows(kFeedForward, type);
  at::Tensor product = swiglu(gate, up);
  measure(state, bytes({gate, up, grad, gate, up}),
          [&] { benchmark::DoNotOptimize(swiglu_backward(grad, gate, up, product)); });
}

void norm_forward(benchmark::State& state, at::ScalarType type) {
  const at::Tensor x = rows(kHidden, type), weight = at::randn({kHidden}).to(type);
  measure(state, bytes({x, x}), [&] { benchmark::DoNotOptimize(rms_norm(x, weight, 1e-5)); });
}

void norm_gradient(benchmark::State& state, at::ScalarType type) {
  const at::Tensor x = rows(kHidden, type), weight = at::randn({kHidden}).to(type),
                   grad = rows(kHidden, type), residual = rows(kHidden, type);
  const at::Tensor scale = rms_norm(x, weight, 1e-5).scale;
  at::Tensor grad_weight = at::zeros({kHidden});
  measure(state, bytes({x, grad, residual, x}), [&] {
    benchmark::DoNotOptimize(rms_norm_backward(grad, x, weight, scale, residual, grad_weight));
  });
}

void rotation(benchmark::State& state, at::ScalarType type) {
  model::Shape shape;
  shape.hidden = kHidden;
  shape.heads = shape.kv_heads = kHeads;
  const RotaryTable table = rotary_table(shape, kTokens, type);
  const at::Tensor x = at::randn({1, kTokens, kHidden}).to(type);
  measure(state, bytes({x, x}), [&] { benchmark::DoNotOptimize(rope(x, table, kHeads, 0)); });
}

void loss(benchmark::State& state, at::ScalarType type) {
  at::Tensor logits = rows(kVocabulary, type, 512);
  const at::Tensor targets = at::randint(kVocabulary, {512}, at::kLong);
  measure(state, bytes({logits, logits}),
          [&] { benchmark::DoNotOptimize(cross_entropy_with_gradient(logits, targets, 1.0)); });
}

void accumulation(benchmark::State& state, at::ScalarType type) {
  const at::Tensor part = rows(kFeedForward, type);
  at::Tensor sum = at::zeros({kTokens, kFeedForward});
  measure(state, bytes({part, sum, sum}), [&] { accumulate(sum, part); });
}

// Matrix products tell their rate of arithmetic instead.
template <class Work>
void measure_flops(benchmark::State& state, double flops, Work&& work) {
  at::set_num_threads(1);
  install_allocator();
  for (auto _ : state) work();
  state.counters["flops_per_second"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void weight_gradient(benchmark::State& state, Bf16Products products) {
  const at::Tensor grad_output = rows(kFeedForward, at::kBFloat16), x = rows(kHidden, at::kBFloat16);
  at::Tensor grad = at::zeros({kFeedForward, kHidden});
  measure_flops(state, 2.0 * kTokens * kFeedForward * kHidden,
                [&] { accumulate_weight_gradient(grad, grad_output, x, products); });
}
BENCHMARK_CAPTURE(weight_gradient, tiled, Bf16Products::Tiled)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(weight_gradient, native, Bf16Products::Native)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(weight_gradient, mkl, Bf16Products::Mkl)->Unit(benchmark::kMicrosecond);

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

#define BOTH_TYPES(kernel)                                                                            \
  BENCHMARK_CAPTURE(kernel, f32, at::kFloat)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime(); \
  BENCHMARK_CAPTURE(kernel, bf16, at::kBFloat16)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime()
BOTH_TYPES(copy);
BOTH_TYPES(swiglu_forward);
BOTH_TYPES(swiglu_gradient);
BOTH_TYPES(norm_forward);
BOTH_TYPES(norm_gradient);
BOTH_TYPES(rotation);
BOTH_TYPES(loss);
BOTH_TYPES(accumulation);

}  // namespace
}  // namespace penstock::nn::kernels
