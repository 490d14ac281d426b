// SPDX-License-Identifier: Apache-2.0
// Seconds of single operations on one device. Arithmetic and memory traffic add up (as in Calculon, Isaev et
// al. 2023), traffic to the share that the arithmetic does not hide: that alone makes small products slow.
#pragma once

#include "plan/hardware.h"

namespace penstock::plan {

// [m, k] x [k, n] of 16-bit numbers; `traffic` bytes more, for what else it reads and writes.
Seconds matrix_product(const Hardware& hardware, double m, double n, double k, double traffic = 0);

// Of a layer's products in the backward: one for the input, one for the weights, whose sum takes `accumulate`
// bytes of traffic a number.
Seconds matrix_product_backward(const Hardware& hardware, double m, double n, double k, double accumulate);

// Flash attention of `queries` against `keys` each on average, heads·d = width; forward, and backward (2.5
// times the arithmetic: five products against two).
Seconds flash_attention(const Hardware& hardware, double queries, double keys, double width);
Seconds flash_attention_backward(const Hardware& hardware, double queries, double keys, double width);

// Attention with its scores in memory: all keys, no causal saving; dropout adds passes.
Seconds plain_attention(const Hardware& hardware, double queries, double keys, double width, double heads,
                        bool dropout);
Seconds plain_attention_backward(const Hardware& hardware, double queries, double keys, double width,
                                 double heads, bool dropout);

inline Seconds elementwise(const Hardware& hardware, double bytes) { return bytes / hardware.memory_rate(); }
inline Seconds gaps(const Hardware& hardware, double kernels) {
  return kernels * 1e-6 * hardware.kernels.gap_us;
}

}  // namespace penstock::plan
