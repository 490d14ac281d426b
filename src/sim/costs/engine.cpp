// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/engine.h"

namespace penstock::sim {
namespace {

// Bytes per token of one pass over a 16-bit tensor of the given width.
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
// read, write; product: two reads, write). Fused: the first sum and its norm together two reads and two
// writes, SwiGLU two reads and a write. GPT: two norms, two bias-dropout-sums (two reads, write, mask), bias
// and GELU (read, write), and the copies that rearrange Q, K and V.
ElementwiseBytes forward_traffic(const Engine& engine, const model::Shape& shape, Family family) {
  const Widths w = widths_of(shape);
  if (family == Family::Llama) {
    return {((engine.fused ? 9 : 10) + engine.unfused_passes) * pass(w.hidden),
            2 * pass(w.queries_keys) + swiglu_passes(engine) * pass(w.mlp)};
  }
  return {11 * pass(w.hidden), 2 * pass(w.mlp) + 4 * pass(w.qkv)};
}

// Llama: norms (read input and gradient, write; sum over the residual's two paths), rotation, SwiGLU
// (product: three reads, two writes; silu: two reads, one write; joining gate and up: two reads, two writes).
// Fused: norms read input, gradient and residual and write; SwiGLU has three reads and two writes.
ElementwiseBytes backward_traffic(const Engine& engine, const model::Shape& shape, Family family) {
  const Widths w = widths_of(shape);
  if (family == Family::Llama) {
    return {((engine.fused ? 8 : 12) + engine.unfused_passes) * pass(w.hidden),
            2 * pass(w.queries_keys) + (engine.fused ? 5 : 12) * pass(w.mlp)};
  }
  return {17 * pass(w.hidden), 3 * pass(w.mlp) + 4 * pass(w.qkv)};
}

namespace {

Constraint exposed_part() { return from_to(0, 4); }

// Bytes, passes or milliseconds, far beyond any trainer's.
constexpr double kMost = 1e6;
Constraint amount() { return from_to(0, kMost); }

void describe_attention(Engine& engine, OptionTable& table) {
  table.push_back({"attention", "kernels", &engine.attention,
                   "Attention kernels; plain keeps the scores in memory.",
                   one_of({"plain", "fa2", "fa3", "triton", "cudnn"})});
  table.push_back({"attention", "dropout", &engine.dropout, "Dropout on the attention scores."});
}

void describe_axes(Engine& engine, OptionTable& table) {
  table.push_back({"tensor", "sequence_parallel", &engine.sequence_parallel,
                   "Sequence parallelism: norms on 1/t of the tokens; else all-reduce."});
  table.push_back(
      {"tensor", "overlap", &engine.tensor_overlap, "Tensor-parallel traffic overlaps the products."});
  table.push_back({"tensor", "regathers_inputs", &engine.regathers_inputs,
                   "Gathers inputs again for weight gradients instead of keeping them."});
  table.push_back({"tensor", "exposed", &engine.tensor_exposed,
                   "Fraction of tensor-parallel traffic that computation does not hide.", exposed_part()});
  table.push_back(
      {"pipeline", "overlap", &engine.pipeline_overlap, "Transfers between stages overlap computation."});
  table.push_back({"pipeline", "exposed", &engine.pipeline_exposed,
                   "Time of dependent transfers, relative to the hardware's.", exposed_part()});
  table.push_back({"pipeline", "waits", &engine.pipeline_waits,
                   "Time that stages wait for each other, as a fraction of their work.", from_to(0, 1)});
  table.push_back({"context", "by_split", &engine.context_by_split,
                   "Context parallelism by the best split of heads and tokens; else K and V in a ring."});
}

void describe_experts(Engine& engine, OptionTable& table) {
  table.push_back(
      {"experts", "folded", &engine.folded_experts,
       "Each rank has whole experts for its own tokens; else experts are split over tensor ranks."});
  table.push_back({"experts", "grouped", &engine.grouped_experts,
                   "One launch for the products of all experts; else one for each expert."});
  table.push_back({"experts", "passes", &engine.routing_passes,
                   "Passes of 2h bytes over the rows of experts, each way: permute and unpermute.",
                   amount()});
  table.push_back({"experts", "direct_dispatch", &engine.direct_dispatch,
                   "A token is sent to a node once, whatever experts it has there."});
  table.push_back({"experts", "exposed", &engine.expert_exposed,
                   "Time of expert traffic, relative to its bytes over the rate.", exposed_part()});
  table.push_back({"experts", "layer_ms", &engine.expert_ms,
                   "Host time per layer with experts and micro-batch, in addition to host.layer_ms.",
                   amount()});
}

void describe_states(Engine& engine, OptionTable& table) {
  table.push_back({"vocabulary", "padded", &engine.padded_vocabulary,
                   "Padded to a multiple of 128 times the tensor ranks."});
  table.push_back({"gradients", "sharded", &engine.shards_optimizer,
                   "Gradients are reduce-scattered and weights gathered; else all-reduced."});
  table.push_back(
      {"gradients", "overlap", &engine.gradient_overlap, "Gradient traffic fully overlaps the backward."});
  table.push_back({"gradients", "once", &engine.gradients_once,
                   "With sharded weights, gradients are reduced once per step, not per micro-batch."});
  table.push_back({"gradients", "bytes", &engine.gradient_bytes,
                   "Bytes per element in the gradient reduction.", from_to(0.1, kMost)});
  table.push_back({"gradients", "accumulate_bytes", &engine.accumulate_bytes,
                   "Memory traffic of accumulating one gradient element, in bytes.", amount()});
  table.push_back({"gradients", "exposed", &engine.gradient_exposed,
                   "Fraction of gradient reductions and weight gathers that computation does not hide.",
                   exposed_part()});
  table.push_back({"optimizer", "bytes", &engine.optimizer_bytes,
                   "Memory traffic of the optimizer per parameter with states on the device, in bytes.",
                   amount()});
  table.push_back({"optimizer", "passes", &engine.gradient_passes,
                   "Memory traffic of zeroing, scaling and norms per local parameter, in bytes.", amount()});
}

void describe_passes_and_host(Engine& engine, OptionTable& table) {
  table.push_back({"elementwise", "fused", &engine.fused,
                   "SwiGLU is one kernel each way, and norms are fused with residual sums."});
  table.push_back({"elementwise", "unfused_passes", &engine.unfused_passes,
                   "Additional passes of 2h bytes per token and layer, each way.", amount()});
  table.push_back({"elementwise", "factor", &engine.elementwise,
                   "Elementwise traffic, as a multiple of the counted passes.", from_to(0.05, 10)});
  table.push_back({"elementwise", "compiled", &engine.compiled,
                   "Further factor where a compiler or library fuses the operations.", from_to(0.05, 1)});
  table.push_back({"host", "layer_ms", &engine.layer_ms,
                   "Host time per layer and micro-batch, forward and backward.", amount()});
  table.push_back({"host", "step_ms", &engine.step_ms, "Host time per step.", amount()});
}

}  // namespace

void describe(Engine& engine, OptionTable& table) {
  table.push_back({"engine", "name", &engine.name, "What the program is called."});
  describe_attention(engine, table);
  describe_axes(engine, table);
  describe_experts(engine, table);
  describe_states(engine, table);
  describe_passes_and_host(engine, table);
}

int forward_kernels(Family family) { return family == Family::Llama ? 16 : 24; }
int backward_kernels(Family family) { return family == Family::Llama ? 34 : 50; }

}  // namespace penstock::sim
