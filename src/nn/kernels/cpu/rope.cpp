// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/rope.h"

#include <algorithm>
#include <vector>

#include "nn/kernels/cpu/pairs.h"
#include "nn/kernels/cpu/vectorised.h"
#include "nn/kernels/head_rows.h"

namespace penstock::nn::kernels {
namespace {

// A token's angles. For bf16 outputs those of even places come before those of odd places.
template <class Number>
struct Angles {
  const Number* cosine;
  const Number* sine;
};

// Rotates the pairs of one head by their angles, times `sign` (-1 in the backward).
template <class In, class Out, class Number, class Half>
inline void turn_row(const In* in, const Angles<Number>& angles, Number sign, Half half, Out* out) {
  const auto [cosine, sine] = angles;
  const std::int64_t pairs = kAnyNarrow<Out> ? half / 2 : 0;
  if constexpr (kAnyNarrow<Out>) {
#pragma omp simd
    for (std::int64_t k = 0; k < pairs; ++k) {
      const auto a = pair_at(in, k), b = pair_at(in + half, k);
      put_word(out, k,
               kWordOf<In>(a.even * cosine[k] - b.even * sine[k],
                           a.odd * cosine[pairs + k] - b.odd * sine[pairs + k]));
      put_word(out + half, k,
               kWordOf<In>(b.even * cosine[k] + a.even * sine[k],
                           b.odd * cosine[pairs + k] + a.odd * sine[pairs + k]));
    }
  }
#pragma omp simd
  for (std::int64_t i = 2 * pairs; i < half; ++i) {
    const Number a(in[i]), b(in[half + i]), s = sign * sine[i];
    out[i] = narrowed<Out>(a * cosine[i] - b * s);
    out[half + i] = narrowed<Out>(b * cosine[i] + a * s);
  }
}

// The numbers at even places, those at odd places, and the last one of an odd count, times `sign` but for it.
template <class Number, class Count>
inline const Number* apart(const Number* from, Number sign, Count count, Number* to) {
  const std::int64_t pairs = count / 2;
#pragma omp simd
  for (std::int64_t k = 0; k < pairs; ++k) {
    to[k] = sign * from[2 * k];
    to[pairs + k] = sign * from[2 * k + 1];
  }
  if (count % 2 != 0) to[count - 1] = from[count - 1];
  return to;
}

// Fetches the row of a later token into the cache.
template <class Element>
inline void prefetch_row(const Element* row, std::int64_t width) {
  constexpr std::int64_t kLine = 64 / sizeof(Element);
  for (std::int64_t i = 0; i < width; i += kLine) __builtin_prefetch(row + i);
}

// Elements from one row to the next of a head, and of a token.
struct Strides {
  std::int64_t head, token;
  explicit Strides(const at::Tensor& view) : head(view.stride(1)), token(view.stride(2)) {}
};

// The tensor in which a head's tokens are adjacent; in the other a token's heads are.
enum class ByHead { In, Out };

// Tokens whose rows of one head are rotated before the next head's, and how many tokens ahead rows are
// fetched: the best of several on an AMD EPYC of the Zen 5 kind.
template <ByHead kByHead, class Out>
struct Walk {
  static constexpr bool kFromHeads = kByHead == ByHead::In;
  static constexpr std::int64_t kBlock = kAnyNarrow<Out> ? 4 : kFromHeads ? 16 : 1;
  static constexpr std::int64_t kAhead = kAnyNarrow<Out> ? 12 : kFromHeads ? 16 : 8;
};

// Rotates the heads of a block of tokens. The tensor by head is accessed in as many streams as there are
// heads: too many for the hardware prefetcher, so its later rows are fetched here. Rows of bf16 are fetched
// in both; for f32 that gained nothing. `room` is for 2 · half numbers of each token: all heads have the same
// angles, so they are taken apart once.
template <ByHead kByHead, class In, class Out, class Number, class Half>
PENSTOCK_VECTORISED void turn_heads(const In* in, Strides in_strides, Angles<Number>* angles,
                                    std::int64_t tokens, Number sign, Half half, std::int64_t heads, Out* out,
                                    Strides out_strides, Number* room) {
  constexpr std::int64_t kTokensAhead = Walk<kByHead, Out>::kAhead;
  if constexpr (kAnyNarrow<Out>) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      Number* own = room + i * 2 * half;
      prefetch_row(angles[i].cosine + tokens * half, half);
      prefetch_row(angles[i].sine + tokens * half, half);
      angles[i] = {apart(angles[i].cosine, Number(1), half, own),
                   apart(angles[i].sine, sign, half, own + half)};
    }
  }
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      const In* from = in + head * in_strides.head + i * in_strides.token;
      Out* to = out + head * out_strides.head + i * out_strides.token;
      if constexpr (kByHead == ByHead::In || kAnyNarrow<In>)
        prefetch_row(from + kTokensAhead * in_strides.token, 2 * half);
      if constexpr (kByHead == ByHead::Out || kAnyNarrow<Out>)
        prefetch_row(to + kTokensAhead * out_strides.token, 2 * half);
      turn_row(from, angles[i], sign, half, to);
    }
  }
}

// The usual sizes are constants for the compiler: loops over so few numbers cost more than their arithmetic.
template <class Work>
void with_half(std::int64_t half, Work&& work) {
  if (half == 32) return work(std::integral_constant<std::int64_t, 32>());
  if (half == 64) return work(std::integral_constant<std::int64_t, 64>());
  work(half);
}

// Both tensors are [b, H, T, d] views with last stride 1.
template <ByHead kByHead, class In, class Out>
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
  const Strides in_strides(in), out_strides(out);
  constexpr std::int64_t kBlock = Walk<kByHead, Out>::kBlock;
  const std::int64_t rows_of_task = rows_per_task(heads * 2 * half);
  at::parallel_for(0, in.size(0) * tokens, rows_of_task, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Number> room(static_cast<std::size_t>(kBlock * 2 * half));
    for (std::int64_t row = begin, count = 0; row < end; row += count) {
      const std::int64_t sequence = row / tokens, token = row % tokens;
      count = std::min({kBlock, end - row, tokens - token});
      Angles<Number> angles[kBlock];
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t in_sequence = positions.of(token + i);
        const std::int64_t start = starts ? starts[sequence * length + in_sequence] : 0;
        const std::int64_t at = (in_sequence - start) * half;
        angles[i] = {cosine + at, sine + at};
      }
      const In* from = source + sequence * in.stride(0) + token * in_strides.token;
      Out* to = target + sequence * out.stride(0) + token * out_strides.token;
      with_half(half, [&](auto known) {
        turn_heads<kByHead>(from, in_strides, angles, count, Number(sign), known, heads, to, out_strides,
                            room.data());
      });
    }
  });
}

}  // namespace

void turn(const at::Tensor& in, const RotaryTable& table, const Positions& positions, double sign,
          at::Tensor& out) {
  for_element_type(out.scalar_type(), [&](auto element) {
    using Element = decltype(element);
    using Wide = Accumulator<Element>;
    const bool in_by_head = in.stride(1) > in.stride(2), same_type = in.scalar_type() == out.scalar_type();
    const auto turn_them =
        in_by_head
            ? (same_type ? turn_as<ByHead::In, Element, Element> : turn_as<ByHead::In, Wide, Element>)
            : (same_type ? turn_as<ByHead::Out, Element, Element> : turn_as<ByHead::Out, Wide, Element>);
    turn_them(in, table, positions, sign, out);
  });
}

}  // namespace penstock::nn::kernels
