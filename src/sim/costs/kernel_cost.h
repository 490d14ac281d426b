// SPDX-License-Identifier: Apache-2.0
// Seconds of single operations on one device. Arithmetic and memory traffic add up (as in Calculon, Isaev et
// al. 2023), traffic to the share that the arithmetic does not hide: that alone makes small products slow.
#pragma once

#include <string_view>

#include "sim/costs/hardware.h"

namespace penstock::sim {

// [m, k] x [k, n] in the precision of training; `traffic` bytes more, for what else it reads and writes.
Seconds matrix_product(const Hardware& hardware, double m, double n, double k, double traffic = 0);

// Of a layer's products in the backward: one for the input, one for the weights, whose sum takes `accumulate`
// bytes of traffic a number.
Seconds matrix_product_backward(const Hardware& hardware, double m, double n, double k, double accumulate);
Seconds matrix_product_weights(const Hardware& hardware, double m, double n, double k, double accumulate);

// Flash attention of a slice of `queries` (in calls of `tokens` each, one for every sequence) over its own
// keys, of whose causal half documents leave the part `seen`, and those of `earlier` slices of the same
// length, heads·d = width; forward, and backward (2.5 times the arithmetic: five products against two).
struct FlashAttention {
  double queries, tokens, earlier, width;
  double seen = 1;
  double head_size = 128;
  std::string_view kernels = "fa2";  // Engine::attention
};
Seconds flash_attention(const Hardware& hardware, const FlashAttention& attention);
Seconds flash_attention_backward(const Hardware& hardware, const FlashAttention& attention);

// Attention with its scores in memory: all keys, no causal saving; dropout adds passes.
struct PlainAttention {
  double queries, keys, width, heads;
  bool dropout = false;
};
Seconds plain_attention(const Hardware& hardware, const PlainAttention& attention);
Seconds plain_attention_backward(const Hardware& hardware, const PlainAttention& attention);

// Passes over memory of `bytes` in all; those of a layer at hidden states of `state` bytes.
inline Seconds elementwise(const Hardware& hardware, double bytes) { return bytes / hardware.memory_rate(); }
Seconds layer_elementwise(const Hardware& hardware, double bytes, double state);
Seconds layer_elementwise_backward(const Hardware& hardware, double bytes, double state);
Seconds optimizer_passes(const Hardware& hardware, double bytes);
inline Seconds gaps(const Hardware& hardware, double kernels) {
  return kernels * 1e-6 * hardware.kernels.gap_us;
}

}  // namespace penstock::sim
