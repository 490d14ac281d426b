// SPDX-License-Identifier: Apache-2.0
// Prints the rate of causal attention on one thread beside that of a product of 2,048³ of the same type, and
// the limit that their ratio is held to, as Markdown tables. Every call is timed between two products, so
// that a machine whose speed drifts changes both; ratios are medians.
//
// Operations are those of the products: two of a forward; five of a backward, which are computed (scores,
// gradients of probabilities, values, keys and queries). Profiles count four of them, as papers do that leave
// out the scores: the last column.
//
//   build/release/bin/attention_table [ROUNDS [LONGEST [f32|bf16]]]
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include "backend/memory.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/attention/tiled.h"
#include "nn/kernels/cpu/attention/tiles.h"
#include "nn/kernels/cpu/tiled_products.h"
#include "nn/kernels/matmul.h"

namespace penstock::nn::kernels {
namespace {

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double seconds(Work&& work) {
  const double begin = processor_time();
  work();
  return processor_time() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The rate that all others are held against.
class SquareProduct {
 public:
  explicit SquareProduct(at::ScalarType type)
      : x_(at::randn({kSide, kSide}).to(type)), weight_(at::randn({kSide, kSide}).to(type)) {}
  double rate() const {
    return 2.0 * kSide * kSide * kSide / seconds([&] { product(x_, weight_); });
  }

 private:
  static constexpr std::int64_t kSide = 2048;
  at::Tensor x_, weight_;
};

struct Size {
  at::ScalarType type;
  std::int64_t tokens, width;
};

// One sequence; as many heads as make a call's time about the same at every length.
class Attention {
 public:
  explicit Attention(const Size& size)
      : size_(size),
        heads_(std::max<std::int64_t>(1, 8192 / size.tokens)),
        query_(draw()),
        key_(draw()),
        value_(draw()),
        grad_(draw()) {
    merged_ = forward();
    merged_.output = merged_.output.to(size.type);
  }
  double forward_rate() const {
    return rate(2, [&] { forward(); });
  }
  double backward_rate() const {
    return rate(5, [&] { attend_backward(grad_, query_, key_, value_, merged_, Mask::Causal); });
  }

 private:
  at::Tensor draw() const { return at::randn({1, heads_, size_.tokens, size_.width}).to(size_.type); }
  AttentionPart forward() const { return attend(query_, key_, value_, Mask::Causal); }
  template <class Work>
  double rate(double products, Work&& work) const {
    const auto tokens = static_cast<double>(size_.tokens), width = static_cast<double>(heads_ * size_.width);
    return products * width * tokens * tokens / seconds(work);  // half of the scores are seen
  }

  Size size_;
  std::int64_t heads_;
  at::Tensor query_, key_, value_, grad_;
  AttentionPart merged_;
};

struct Measured {
  std::vector<double> rates, ratios;
};

template <class Rate>
Measured measure(int rounds, const SquareProduct& square, Rate&& rate) {
  Measured result;
  rate();
  double before = square.rate();
  for (int round = 0; round < rounds; ++round) {
    const double own = rate(), after = square.rate();
    result.rates.push_back(own);
    result.ratios.push_back(own * 0.5 * (1 / before + 1 / after));
    before = after;
  }
  return result;
}

void print_row(const char* pass, const Size& size, const Measured& measured, double limit, bool backward) {
  const double ratio = median(measured.ratios);
  std::printf("| %s | %s | %ld | %ld | %.1f | %.2f | ≥ %.2f | %s | %s |\n", pass,
              size.type == at::kFloat ? "f32" : "bf16", static_cast<long>(size.tokens),
              static_cast<long>(size.width), median(measured.rates) / 1e9, ratio, limit,
              ratio >= limit ? "met" : "missed",
              backward ? std::to_string(0.8 * ratio).substr(0, 4).c_str() : "");
  std::fflush(stdout);
}

void print_rows(int rounds, const SquareProduct& square, const Size& size) {
  const Attention attention(size);
  const bool single = size.type == at::kFloat;
  print_row("forward", size, measure(rounds, square, [&] { return attention.forward_rate(); }),
            single ? 0.85 : 0.75, false);
  print_row("backward", size, measure(rounds, square, [&] { return attention.backward_rate(); }),
            single ? 0.8 : 0.75, true);
}

// Lengths up to `longest` for usual heads, one length for others.
void print_rates(int rounds, std::int64_t longest, const std::vector<at::ScalarType>& types) {
  std::printf(
      "| attention | type | tokens | head size | GFLOP/s | of the product | aim | | four products |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  for (const at::ScalarType type : types) {
    const SquareProduct square(type);
    for (const std::int64_t width : {64, 128}) {
      for (std::int64_t tokens = 2048; tokens <= longest; tokens *= 4)
        print_rows(rounds, square, {type, tokens, width});
    }
    for (const std::int64_t width : {96, 256}) print_rows(rounds, square, {type, 4096, width});
  }
}

// Of a tile's scores in cache: maximum, exponentials, their sum and the rounding.
void print_softmax(int rounds, const std::vector<at::ScalarType>& types) {
  constexpr std::int64_t kCalls = 500;
  constexpr double kAim = 0.35;
  std::printf("\n| softmax | ns a score | aim | |\n|---|---|---|---|\n");
  for (const at::ScalarType type : types) {
    const at::Tensor scores = at::randn({kKeys, kPanel});
    at::Tensor probabilities = at::empty({kKeys, kPanel}, at::dtype(multiplied_type(type)));
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      times.push_back(1e9 / static_cast<double>(kCalls * kKeys * kPanel) * seconds([&] {
                        for (std::int64_t call = 0; call < kCalls; ++call)
                          softmax_tile(scores, probabilities);
                      }));
    }
    const double time = median(times);
    std::printf("| %s | %.2f | ≤ %.2f | %s |\n", type == at::kFloat ? "f32" : "bf16", time, kAim,
                time <= kAim ? "met" : "missed");
  }
}

}  // namespace
}  // namespace penstock::nn::kernels

int main(int count, char** arguments) {
  using namespace penstock::nn;
  at::set_num_threads(1);
  penstock::backend::install_allocator();
  // Freed blocks are reused up to a tenth of the peak use (allocator.h): as in a training step, results of
  // calls shall not be mapped anew. Never touched, so it takes no memory.
  const at::Tensor peak = at::empty({1 << 30}, at::kByte);
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 5;
  std::vector<at::ScalarType> asked{at::kFloat, at::kBFloat16};
  if (count > 3) asked = {std::string_view(arguments[3]) == "f32" ? at::kFloat : at::kBFloat16};
  kernels::print_rates(rounds, count > 2 ? std::atol(arguments[2]) : 32768, asked);
  kernels::print_softmax(rounds, asked);
}
