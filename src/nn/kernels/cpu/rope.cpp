// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rope.h"

#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/head_rows.h"

namespace penstock::nn::kernels {
namespace {

// Rotates the pairs of one head by their angles, times `sign` (-1 in the backward).
template <class In, class Out, class Number>
inline void turn_row(const In* in, const Number* cosine, const Number* sine, Number sign, std::int64_t half,
                     Out* out) {
  const auto first = [sign](Number a, Number b, Number c, Number s) { return a * c - b * (sign * s); };
  const auto second = [sign](Number a, Number b, Number c, Number s) { return b * c + a * (sign * s); };
  map(half, Inputs(in, in + half, cosine, sine), Output(out, first), Output(out + half, second));
}

// Rotates the heads of one token. In one tensor a token's heads are adjacent, in the other a head's tokens.
// Token by token, both are accessed in order, the latter in as many streams as there are heads.
template <class In, class Out, class Number>
PENSTOCK_VECTORISED void turn_heads(const In* in, std::int64_t in_stride, const Number* cosine,
                                    const Number* sine, Number sign, std::int64_t half, std::int64_t heads,
                                    Out* out, std::int64_t out_stride) {
  for (std::int64_t head = 0; head < heads; ++head)
    turn_row(in + head * in_stride, cosine, sine, sign, half, out + head * out_stride);
}

// Both tensors are [b, H, T, d] views with last stride 1.
template <class In, class Out>
void turn_as(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
             at::Tensor& out) {
  using Number = Accumulator<Out>;
  const std::int64_t heads = in.size(1), tokens = in.size(2), half = in.size(3) / 2;
  const In* source = in.const_data_ptr<In>();
  Out* target = out.data_ptr<Out>();
  const Number* cosine = table.cosine.const_data_ptr<Number>();
  const Number* sine = table.sine.const_data_ptr<Number>();
  const std::int64_t* starts =
      positions.starts.defined() ? positions.starts.const_data_ptr<std::int64_t>() : nullptr;
  const std::int64_t length = starts ? positions.starts.size(1) : 0;
  for_rows(in.size(0) * tokens, heads * 2 * half, [&](std::int64_t row) {
    const std::int64_t sequence = row / tokens, token = row % tokens;
    const std::int64_t in_sequence = positions.of(token);
    const std::int64_t start = starts ? starts[sequence * length + in_sequence] : 0;
    const std::int64_t angles = (in_sequence - start) * half;
    turn_heads(source + sequence * in.stride(0) + token * in.stride(2), in.stride(1), cosine + angles,
               sine + angles, Number(sign), half, heads,
               target + sequence * out.stride(0) + token * out.stride(2), out.stride(1));
  });
}

}  // namespace

void turn(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
          at::Tensor& out) {
  for_element_type(out.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    if (in.scalar_type() == out.scalar_type()) {
      turn_as<Element, Element>(in, table, positions, sign, out);
    } else {
      turn_as<Accumulator<Element>, Element>(in, table, positions, sign, out);
    }
  });
}

}  // namespace penstock::nn::kernels
