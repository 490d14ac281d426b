// SPDX-License-Identifier: Apache-2.0
// Work that memory bounds, on one thread, beside copies of as many bytes: calls of a kernel and copies take
// turns, so that what else the machine does slows both. Sizes are those of the standard size S (2,048 tokens,
// hidden 512, ffn 1,376, vocabulary 8,192), whose tensors fit in a large cache, and "long", eight times the
// tokens, which do not. `of_copy` is the median share of the copy's rate.
//
//   build/release/bin/elementwise_benchmark --benchmark_filter=swiglu
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "backend/memory.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/swiglu.h"

namespace penstock::nn::kernels {
namespace {

constexpr std::int64_t kHidden = 512, kFeedForward = 1376, kHeads = 8, kVocabulary = 8192;

struct Size {
  at::ScalarType type;
  std::int64_t tokens = 2048;
  at::Tensor rows(std::int64_t width) const { return at::randn({tokens, width}).to(type); }
};

double bytes(std::initializer_list<at::Tensor> tensors) {
  double sum = 0;
  for (const at::Tensor& tensor : tensors) sum += static_cast<double>(tensor.nbytes());
  return sum;
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of one call. The first brings its tensors back into the cache that the other's took.
template <class Work>
double seconds_of(Work&& work) {
  constexpr int kCalls = 3;
  work();
  const double begin = processor_seconds();
  for (int call = 0; call < kCalls; ++call) work();
  return (processor_seconds() - begin) / kCalls;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// `moved` are the bytes that one call reads and writes at least.
template <class Work>
void measure(benchmark::State& state, double moved, Work&& work) {
  at::set_num_threads(1);
  backend::install_allocator();
  const at::Tensor from = at::zeros({static_cast<std::int64_t>(moved) / 8}, at::kFloat);
  at::Tensor to = at::zeros_like(from);
  std::vector<double> shares, rates;
  for (auto _ : state) {
    const double copy = seconds_of([&] { to.copy_(from); }), own = seconds_of(work);
    state.SetIterationTime(own);
    shares.push_back(copy / own);
    rates.push_back(moved / copy);
  }
  state.counters["bytes_per_second"] =
      benchmark::Counter(moved, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  state.counters["copy_bytes_per_second"] = median(rates);
  state.counters["of_copy"] = median(shares);
}

void swiglu_forward(benchmark::State& state, Size size) {
  const at::Tensor gate = size.rows(kFeedForward), up = size.rows(kFeedForward);
  measure(state, bytes({gate, up, gate}), [&] { benchmark::DoNotOptimize(swiglu(gate, up)); });
}

void swiglu_gradient(benchmark::State& state, Size size) {
  // Gate and up become their gradients: of zeros, so that a call after many has no numbers near zero.
  at::Tensor gate = size.rows(kFeedForward), up = size.rows(kFeedForward), grad = at::zeros_like(gate);
  at::Tensor product = swiglu(gate, up);
  measure(state, bytes({gate, up, grad, gate, up}), [&] {
    swiglu_backward(grad, gate, up, product);
    benchmark::DoNotOptimize(gate);
  });
}

void norm_forward(benchmark::State& state, Size size) {
  const at::Tensor x = size.rows(kHidden), weight = at::randn({kHidden}).to(size.type);
  measure(state, bytes({x, x}), [&] { benchmark::DoNotOptimize(rms_norm(x, weight, 1e-5)); });
}

void norm_of_sum(benchmark::State& state, Size size) {
  const at::Tensor x = size.rows(kHidden), branch = size.rows(kHidden),
                   weight = at::randn({kHidden}).to(size.type);
  measure(state, bytes({x, branch, x, branch}), [&] {
    at::Tensor sum;
    benchmark::DoNotOptimize(rms_norm_of_sum(x, branch, weight, 1e-5, sum));
  });
}

void norm_gradient(benchmark::State& state, Size size) {
  const at::Tensor x = size.rows(kHidden), weight = at::randn({kHidden}).to(size.type),
                   grad = size.rows(kHidden), residual = size.rows(kHidden);
  const at::Tensor scale = rms_norm(x, weight, 1e-5).scale;
  at::Tensor grad_weight = at::zeros({kHidden});
  measure(state, bytes({x, grad, residual, x}), [&] {
    benchmark::DoNotOptimize(rms_norm_backward(grad, x, weight, scale, residual, grad_weight));
  });
}

void rotation(benchmark::State& state, Size size) {
  model::Shape shape;
  shape.hidden = kHidden;
  shape.heads = shape.kv_heads = kHeads;
  const RotaryTable table = rotary_table(shape, size.tokens, size.type);
  const at::Tensor x = size.rows(kHidden).view({1, size.tokens, kHidden});
  measure(state, bytes({x, x}), [&] { benchmark::DoNotOptimize(rope(x, table, kHeads, 0)); });
}

void rotation_gradient(benchmark::State& state, Size size) {
  model::Shape shape;
  shape.hidden = kHidden;
  shape.heads = shape.kv_heads = kHeads;
  const RotaryTable table = rotary_table(shape, size.tokens, size.type);
  const at::Tensor grad = at::randn({1, kHeads, size.tokens, kHidden / kHeads}).to(size.type);
  measure(state, bytes({grad, grad}),
          [&] { benchmark::DoNotOptimize(rope_backward(grad, table, 0, size.type)); });
}

// Tiles of the loss have a quarter of the tokens.
void loss(benchmark::State& state, Size size) {
  at::Tensor logits = Size{size.type, size.tokens / 4}.rows(kVocabulary);
  const at::Tensor targets = at::randint(kVocabulary, {size.tokens / 4}, at::kLong);
  measure(state, bytes({logits, logits}),
          [&] { benchmark::DoNotOptimize(cross_entropy_with_gradient(logits, targets, 1.0)); });
}

void accumulation(benchmark::State& state, Size size) {
  const at::Tensor part = size.rows(kFeedForward);
  at::Tensor sum = at::zeros({size.tokens, kFeedForward});
  measure(state, bytes({part, sum, sum}), [&] { accumulate(sum, part); });
}

void merging(benchmark::State& state, Size size) {
  // Token by token, as attention writes its output.
  const auto output = [&](at::ScalarType type) {
    return at::randn({1, size.tokens, kHeads, kHidden / kHeads}).to(type).transpose(1, 2);
  };
  const auto sums = [&] { return at::randn({1, kHeads, size.tokens}); };
  const AttentionPart part{output(size.type), sums()};
  AttentionPart total{output(at::kFloat), sums()};
  measure(state, bytes({total.output, total.output, part.output}), [&] { merge(total, part); });
}

// As train/step/optimizer.cpp does without a clipped gradient.
void optimizer(benchmark::State& state, Size size) {
  const auto made = [&] { return at::randn({size.tokens, kFeedForward}); };
  const at::Tensor master = made(), gradient = made();
  const at::Tensor first = at::zeros_like(master), second = at::zeros_like(master);
  const at::Tensor count = at::full({}, 10.0f, at::kFloat);
  measure(state, 7.0 * static_cast<double>(master.nbytes()), [&] {
    at::_fused_adamw_({master}, {gradient}, {first}, {second}, {}, {count}, 1e-4, 0.9, 0.95, 0.1, 1e-8, false,
                      false);
  });
}

#define MEASURED(kernel, name, ...) \
  BENCHMARK_CAPTURE(kernel, name, Size{__VA_ARGS__})->Unit(benchmark::kMicrosecond)->UseManualTime()
#define ALL_SIZES(kernel)                        \
  MEASURED(kernel, f32, at::kFloat);             \
  MEASURED(kernel, f32_long, at::kFloat, 16384); \
  MEASURED(kernel, bf16, at::kBFloat16);         \
  MEASURED(kernel, bf16_long, at::kBFloat16, 16384)
ALL_SIZES(swiglu_forward);
ALL_SIZES(swiglu_gradient);
ALL_SIZES(norm_forward);
ALL_SIZES(norm_of_sum);
ALL_SIZES(norm_gradient);
ALL_SIZES(rotation);
ALL_SIZES(rotation_gradient);
ALL_SIZES(loss);
ALL_SIZES(accumulation);
ALL_SIZES(merging);
MEASURED(optimizer, f32, at::kFloat);
MEASURED(optimizer, f32_long, at::kFloat, 16384);

}  // namespace
}  // namespace penstock::nn::kernels
