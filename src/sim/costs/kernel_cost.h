// SPDX-License-Identifier: Apache-2.0
// Seconds of single operations on one device: arithmetic plus memory traffic (as in Calculon, Isaev et al.
// 2023). Of the traffic only the share not hidden by the arithmetic counts; it makes small products slow.
#pragma once

#include <string_view>

#include "sim/costs/hardware.h"

namespace penstock::sim {

// [m, k] x [k, n] in the training precision.
Seconds matrix_product(const Hardware& hardware, double m, double n, double k);

// The backward of a product: input gradient plus weight gradient, or the latter alone. Adding the weight
// gradient to its sum takes `accumulate` bytes of traffic per number.
Seconds matrix_product_backward(const Hardware& hardware, double m, double n, double k, double accumulate);
Seconds matrix_product_weights(const Hardware& hardware, double m, double n, double k, double accumulate);

// Flash attention of a slice of `queries` (in calls of `tokens` each, one per sequence) over its own keys and
// those of `earlier` slices of the same length; heads·d = width. `seen`: part of the own keys' causal half
// that documents leave. The backward has 2.5 times the arithmetic: five products instead of two.
struct FlashAttention {
  double queries, tokens, earlier, width;
  double seen = 1;
  double head_size = 128;
  std::string_view kernels = "fa2";  // Engine::attention
};
Seconds flash_attention(const Hardware& hardware, const FlashAttention& attention);
Seconds flash_attention_backward(const Hardware& hardware, const FlashAttention& attention);

// The kernels whose rates attention takes if an engine has `kernels`: those of the measured rates, or the
// nearest that the hardware file describes.
std::string_view rated_kernels(const Hardware& hardware, std::string_view kernels);

// Attention with its scores in memory: all keys, no causal skipping; dropout adds passes.
struct PlainAttention {
  double queries, keys, width, heads;
  bool dropout = false;
};
Seconds plain_attention(const Hardware& hardware, const PlainAttention& attention);
Seconds plain_attention_backward(const Hardware& hardware, const PlainAttention& attention);

// Elementwise passes with `bytes` of traffic in total; for a layer, with hidden states of `state` bytes.
inline Seconds elementwise(const Hardware& hardware, double bytes) { return bytes / hardware.memory_rate(); }
Seconds layer_elementwise(const Hardware& hardware, double bytes, double state);
Seconds layer_elementwise_backward(const Hardware& hardware, double bytes, double state);
Seconds optimizer_passes(const Hardware& hardware, double bytes);
inline Seconds gaps(const Hardware& hardware, double kernels) {
  return kernels * 1e-6 * hardware.kernels.gap_us;
}

}  // namespace penstock::sim
