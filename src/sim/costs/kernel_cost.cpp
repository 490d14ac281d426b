// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/kernel_cost.h"

#include <cmath>

#include "sim/costs/curve.h"

namespace penstock::sim {
namespace {

Seconds exposed_traffic(const Hardware& hardware, double bytes) {
  return hardware.efficiency.matrix_traffic * bytes / hardware.memory_rate();
}

double table_rate(const Numbers& at, const Numbers& wanted, const Numbers& otherwise, double position) {
  return on_curve(at, wanted.empty() ? otherwise : wanted, position);
}

// Arithmetic rates over own and over earlier keys, FLOP/s.
struct AttentionRates {
  double own, earlier;
};

double attention_efficiency(const Hardware& hardware, std::string_view kernels) {
  const Efficiency& efficiency = hardware.efficiency;
  const std::string_view rated = rated_kernels(hardware, kernels);
  if (rated == "fa3") return efficiency.attention_fa3;
  if (rated == "cudnn") return efficiency.attention_cudnn;
  return rated == "triton" ? efficiency.attention_triton : efficiency.attention;
}

AttentionRates forward_rates(const Hardware& hardware, const FlashAttention& attention) {
  const Measured& measured = hardware.measured;
  const Numbers& at = measured.attention_tokens;
  const double tokens = attention.tokens;
  if (at.empty()) {
    const Efficiency& efficiency = hardware.efficiency;
    const double rate = hardware.peak() * attention_efficiency(hardware, attention.kernels) * tokens /
                        (tokens + efficiency.attention_half) *
                        (attention.head_size <= 64 ? efficiency.narrow_heads : 1);
    return {rate, rate};
  }
  return {1e12 * on_curve(at, measured.attention_tflops, tokens),
          1e12 * table_rate(at, measured.earlier_attention_tflops, measured.attention_tflops, tokens)};
}

AttentionRates backward_rates(const Hardware& hardware, const FlashAttention& attention) {
  const double tokens = attention.tokens;
  const Measured& measured = hardware.measured;
  const Numbers& own = measured.attention_backward_tflops;
  if (own.empty()) {
    const AttentionRates forward = forward_rates(hardware, attention);
    const double factor = hardware.efficiency.attention_backward;
    return {factor * forward.own, factor * forward.earlier};
  }
  return {
      1e12 * on_curve(measured.attention_tokens, own, tokens),
      1e12 * table_rate(measured.attention_tokens, measured.earlier_attention_backward_tflops, own, tokens)};
}

// The two forward products: 4 FLOPs per query-key pair and unit of width.
Seconds attention_seconds(const FlashAttention& attention, const AttentionRates& rates) {
  const double pairs = 4.0 * attention.queries * attention.tokens * attention.width;
  return attention.seen * pairs / 2 / rates.own + attention.earlier * pairs / rates.earlier;
}

double elementwise_rate(const Hardware& hardware, const Numbers& rates, double state) {
  const Measured& measured = hardware.measured;
  if (measured.elementwise_mb.empty()) return hardware.memory_rate();
  return 1e9 * table_rate(measured.elementwise_mb, rates, measured.elementwise_gbps, state / 1e6);
}

// Time at `position`. Below the first measured position it is on the line through the first two, since even
// a tiny product has a fixed cost: at least the time by the rate there, at most the first measured time.
template <class Time>
Seconds from_table(const Numbers& at, double position, const Time& time) {
  if (position >= at.front() || at.size() == 1) return time(position);
  const Seconds first = time(at[0]), slope = std::max(0.0, time(at[1]) - first) / (at[1] - at[0]);
  return std::max(time(position), first - slope * (at[0] - position));
}

// A product [m, k] x [k, n], from a measured table or from peak rate and efficiency. `traffic`: bytes that it
// reads and writes besides its operands.
Seconds product_seconds(const Hardware& hardware, const Numbers& rates, double m, double n, double k,
                        double traffic) {
  const Measured& measured = hardware.measured;
  if (!rates.empty()) {
    const double width = std::sqrt(k * n);
    return from_table(measured.matrix_tokens, m, [&](double rows) {
      return 2.0 * rows * k * n /
             (1e12 * on_grid(measured.matrix_tokens, measured.matrix_width, rates, rows, width));
    });
  }
  return 2.0 * m * n * k / (hardware.peak() * hardware.efficiency.matrix) +
         exposed_traffic(hardware, hardware.number_bytes() * (m * k + k * n + m * n) + traffic);
}

// Traffic over the attention scores of b sequences. `bytes` per score, forward: the products write and read
// them (4), softmax reads and writes (4), dropout reads, writes and keeps a mask (5); backward: twice the
// products' (8), softmax reads both and writes (6), dropout (5).
Seconds score_traffic(const Hardware& hardware, const PlainAttention& attention, double bytes) {
  return elementwise(hardware, attention.queries * attention.keys * attention.heads * bytes);
}

Seconds plain_products(const Hardware& hardware, const PlainAttention& attention) {
  const Efficiency& efficiency = hardware.efficiency;
  const auto head_size = static_cast<std::int64_t>(std::round(attention.width / attention.heads));
  const double rate = efficiency.plain_attention * (head_size % 8 == 0 ? 1 : efficiency.odd_heads);
  return 4.0 * attention.queries * attention.keys * attention.width / (hardware.peak() * rate);
}

}  // namespace

Seconds matrix_product(const Hardware& hardware, double m, double n, double k) {
  return product_seconds(hardware, hardware.measured.forward_rates(hardware.f32()), m, n, k, 0);
}

Seconds matrix_product_weights(const Hardware& hardware, double m, double n, double k, double accumulate) {
  const Numbers& rates = hardware.measured.weight_rates(hardware.f32());
  return product_seconds(hardware, rates, m, n, k, k * n * accumulate);
}

Seconds matrix_product_backward(const Hardware& hardware, double m, double n, double k, double accumulate) {
  return product_seconds(hardware, hardware.measured.input_rates(hardware.f32()), m, k, n, 0) +
         matrix_product_weights(hardware, m, n, k, accumulate);
}

std::string_view rated_kernels(const Hardware& hardware, std::string_view kernels) {
  const Efficiency& efficiency = hardware.efficiency;
  if (kernels == "plain") return kernels;
  if (!hardware.measured.attention_tokens.empty()) return hardware.kernels.attention;
  if (kernels == "fa3" && efficiency.attention_fa3 > 0) return "fa3";
  if ((kernels == "cudnn" || kernels == "fa3") && efficiency.attention_cudnn > 0) return "cudnn";
  if (kernels == "triton" && efficiency.attention_triton > 0) return "triton";
  return hardware.kernels.attention;
}

Seconds flash_attention(const Hardware& hardware, const FlashAttention& attention) {
  return attention_seconds(attention, forward_rates(hardware, attention));
}

Seconds flash_attention_backward(const Hardware& hardware, const FlashAttention& attention) {
  return 2.5 * attention_seconds(attention, backward_rates(hardware, attention));
}

Seconds layer_elementwise(const Hardware& hardware, double bytes, double state) {
  return bytes / elementwise_rate(hardware, hardware.measured.elementwise_gbps, state);
}

Seconds layer_elementwise_backward(const Hardware& hardware, double bytes, double state) {
  return bytes / elementwise_rate(hardware, hardware.measured.elementwise_backward_gbps, state);
}

Seconds optimizer_passes(const Hardware& hardware, double bytes) {
  const double measured = 1e9 * hardware.measured.optimizer_gbps;
  return bytes / (measured > 0 ? measured : hardware.memory_rate());
}

Seconds plain_attention(const Hardware& hardware, const PlainAttention& attention) {
  return plain_products(hardware, attention) + score_traffic(hardware, attention, attention.dropout ? 13 : 8);
}

Seconds plain_attention_backward(const Hardware& hardware, const PlainAttention& attention) {
  return 2.0 * plain_products(hardware, attention) +
         score_traffic(hardware, attention, attention.dropout ? 19 : 14);
}

}  // namespace penstock::sim
