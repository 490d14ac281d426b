// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/engine.h"

namespace penstock::sim {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

// Bytes of one pass over a 16-bit tensor of the given width, per token.
double pass(double width) { return 2.0 * width; }

struct Widths {
  double hidden, mlp, queries_keys, qkv;
};

Widths widths_of(const model::Shape& shape) {
  return {as_double(shape.hidden), as_double(shape.ffn * shape.experts_per_token + shape.shared_ffn),
          as_double(shape.query_width() + shape.kv_width()),
          as_double(shape.query_width() + 2 * shape.kv_width())};
}

}  // namespace

// Llama: two norms (read, write), two residual sums (two reads, write), rotation (read, write), SwiGLU (silu:
// read, write; product: two reads, write). Fused: the first sum and its norm two
// reads and two writes together, SwiGLU two reads and a write. GPT: two norms, two bias-dropout-sums
// (two reads, write, mask), bias and GELU (read, write), and the copies that bring Q, K and V into place.
ElementwiseBytes forward_traffic(const Engine& engine, const model::Shape& shape, Family family) {
  const Widths w = widths_of(shape);
  if (family == Family::Llama) {
    return {((engine.fused ? 9 : 10) + engine.unfused_passes) * pass(w.hidden),
            2 * pass(w.queries_keys) + (engine.fused ? 3 : 5) * pass(w.mlp)};
  }
  return {11 * pass(w.hidden), 2 * pass(w.mlp) + 4 * pass(w.qkv)};
}

// Llama: norms (read input and gradient, write; sum over the residual's two paths), rotation, SwiGLU
// (product: three reads, two writes; silu: two reads, one write; joining gate and up: two reads, two writes).
// Fused: norms that read input, gradient and residual and write; SwiGLU of three reads and two writes.
ElementwiseBytes backward_traffic(const Engine& engine, const model::Shape& shape, Family family) {
  const Widths w = widths_of(shape);
  if (family == Family::Llama) {
    return {((engine.fused ? 8 : 12) + engine.unfused_passes) * pass(w.hidden),
            2 * pass(w.queries_keys) + (engine.fused ? 5 : 12) * pass(w.mlp)};
  }
  return {17 * pass(w.hidden), 3 * pass(w.mlp) + 4 * pass(w.qkv)};
}

int forward_kernels(Family family) { return family == Family::Llama ? 16 : 24; }
int backward_kernels(Family family) { return family == Family::Llama ? 34 : 50; }

}  // namespace penstock::sim
