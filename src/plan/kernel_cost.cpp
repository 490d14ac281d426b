// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_cost.h"

#include <algorithm>
#include <cmath>

namespace penstock::plan {
namespace {

// Between two points linear over the logarithm of the size; beyond the ends the end's rate.
double on_curve(const Numbers& at, const Numbers& rates, double size) {
  const auto above = std::lower_bound(at.begin(), at.end(), size);
  if (above == at.begin()) return rates.front();
  if (above == at.end()) return rates.back();
  const std::size_t i = static_cast<std::size_t>(above - at.begin());
  const double share = std::log(size / at[i - 1]) / std::log(at[i] / at[i - 1]);
  return rates[i - 1] + share * (rates[i] - rates[i - 1]);
}

Seconds hidden_traffic(const Hardware& hardware, double bytes) {
  return hardware.efficiency.matrix_traffic * bytes / hardware.memory_rate();
}

double attention_rate(const Hardware& hardware, double keys) {
  const Measured& measured = hardware.measured;
  if (measured.attention_tokens.empty()) return hardware.peak() * hardware.efficiency.attention;
  return 1e12 * on_curve(measured.attention_tokens, measured.attention_tflops, keys);
}

// Bytes of passes over the scores of b sequences: products write and read them (4), softmax reads and writes
// (4), dropout reads, writes and keeps a mask (5); backward twice the products' (8), softmax reads both and
// writes (6), dropout (5).
double score_traffic(double queries, double keys, double heads, double bytes) {
  return queries * keys * heads * bytes;
}

Seconds plain_products(const Hardware& hardware, double queries, double keys, double width) {
  return 4.0 * queries * keys * width / (hardware.peak() * hardware.efficiency.plain_attention);
}

}  // namespace

Seconds matrix_product(const Hardware& hardware, double m, double n, double k, double traffic) {
  const Measured& measured = hardware.measured;
  const double flops = 2.0 * m * n * k;
  if (!measured.matrix_gflop.empty()) {
    return flops / (1e12 * on_curve(measured.matrix_gflop, measured.matrix_tflops, flops / 1e9));
  }
  return flops / (hardware.peak() * hardware.efficiency.matrix) +
         hidden_traffic(hardware, 2.0 * (m * k + k * n + m * n) + traffic);
}

Seconds matrix_product_backward(const Hardware& hardware, double m, double n, double k, double accumulate) {
  return matrix_product(hardware, m, k, n) + matrix_product(hardware, k, n, m, k * n * accumulate);
}

Seconds flash_attention(const Hardware& hardware, double queries, double keys, double width) {
  return 4.0 * queries * keys * width / attention_rate(hardware, keys);
}

Seconds flash_attention_backward(const Hardware& hardware, double queries, double keys, double width) {
  return 2.5 * flash_attention(hardware, queries, keys, width) / hardware.efficiency.attention_backward;
}

Seconds plain_attention(const Hardware& hardware, double queries, double keys, double width, double heads,
                        bool dropout) {
  return plain_products(hardware, queries, keys, width) +
         elementwise(hardware, score_traffic(queries, keys, heads, dropout ? 13 : 8));
}

Seconds plain_attention_backward(const Hardware& hardware, double queries, double keys, double width,
                                 double heads, bool dropout) {
  return 2.0 * plain_products(hardware, queries, keys, width) +
         elementwise(hardware, score_traffic(queries, keys, heads, dropout ? 19 : 14));
}

}  // namespace penstock::plan
