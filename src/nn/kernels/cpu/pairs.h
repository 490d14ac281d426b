// SPDX-License-Identifier: Apache-2.0
// Loops over rows of elements that vectorise without shuffles.
//
// Two adjacent bf16 form one 32-bit word. Masking off the lower one gives the upper one as f32, shifting up
// gives the lower one, and one shift and one selection join two results. So one vector holds the even
// elements and another the odd ones. Element by element, the compiler would widen, extract and repack halves
// of registers, which costs more than the arithmetic. Elements are independent: results have the bits of the
// same formula applied to one element.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>

#include "nn/kernels/cpu/element.h"

namespace penstock::nn::kernels {

template <class Number>
struct Pair {
  Number even, odd;
};

// Elements 2k and 2k + 1.
template <class Element>
inline Pair<Accumulator<Element>> pair_at(const Element* from, std::int64_t k) {
  return {from[2 * k], from[2 * k + 1]};
}
template <>
inline Pair<float> pair_at<c10::BFloat16>(const c10::BFloat16* from, std::int64_t k) {
  std::uint32_t word;
  std::memcpy(&word, from + 2 * k, sizeof(word));
  return {std::bit_cast<float>(word << 16), std::bit_cast<float>(word & 0xFFFF0000u)};
}

// Rounds both numbers to bf16, in one word.
inline std::uint32_t word_of(float even, float odd) {
  return (rounded_to_upper_half(even) >> 16) | (rounded_to_upper_half(odd) & 0xFFFF0000u);
}

// The same for what arithmetic made of bf16 alone, a third of the work less: the lower half of its NaN is
// zero, so that rounding does not carry into the sign, and NaN stays NaN.
inline std::uint32_t word_of_narrow(float even, float odd) {
  return (number_to_upper_half(even) >> 16) | (number_to_upper_half(odd) & 0xFFFF0000u);
}

inline void put_word(c10::BFloat16* to, std::int64_t k, std::uint32_t word) {
  std::memcpy(to + 2 * k, &word, sizeof(word));
}

template <class... Elements>
inline constexpr bool kAnyNarrow = (std::is_same_v<Elements, c10::BFloat16> || ...);

// Rounds what arithmetic made of such elements.
template <class... Elements>
inline constexpr auto kWordOf = (std::is_same_v<Elements, c10::BFloat16> && ...) ? word_of_narrow : word_of;

// A row to write: its element i is formula(element i of each input row).
template <class Element, class Formula>
struct Output {
  Element* row;
  Formula formula;
};
template <class Element, class Formula>
Output(Element*, Formula) -> Output<Element, Formula>;

template <class... In>
struct Inputs {
  std::tuple<const In*...> rows;
  explicit Inputs(const In*... from) : rows(from...) {}
};

// Writes one or more rows of `count` elements of one type. A row may be both read and written; rows must not
// overlap otherwise. Common subexpressions of the formulas are computed once. Use in PENSTOCK_VECTORISED
// functions.
template <class Out, class... In, class... Formulas>
inline void map(std::int64_t count, const Inputs<In...>& inputs, const Output<Out, Formulas>&... outputs) {
  // No arrays or structs of results in these loops: GCC would keep them in memory and not vectorise.
  std::apply(
      [&](const In*... from) {
        std::int64_t done = 0;
        if constexpr (kAnyNarrow<Out>) {
          const std::int64_t pairs = count / 2;
#pragma omp simd
          for (std::int64_t k = 0; k < pairs; ++k) {
            [&](std::int64_t place, auto... words) { (put_word(outputs.row, place, words), ...); }(
                k, kWordOf<In...>(outputs.formula(pair_at(from, k).even...),
                                  outputs.formula(pair_at(from, k).odd...))...);
          }
          done = 2 * pairs;
        }
#pragma omp simd
        for (std::int64_t i = done; i < count; ++i) {
          [&](std::int64_t place, auto... values) { ((outputs.row[place] = narrowed<Out>(values)), ...); }(
              i, outputs.formula(Accumulator<In>(from[i])...)...);
        }
      },
      inputs.rows);
}

// A sum of 64 partial sums, the second half of which is repeatedly added to the first. The order depends only
// on the number of terms. Halving takes six vector operations, where reducing the lanes of one vector is a
// chain of sixteen scalar ones.
template <class Number>
class Sums {
 public:
  static constexpr std::int64_t kParts = 64;
  Number& operator[](std::int64_t part) { return parts_[part]; }

  void add(const Number* terms, std::int64_t count) {
    std::int64_t begin = 0;
    for (; begin + kParts <= count; begin += kParts) {
      for (std::int64_t part = 0; part < kParts; ++part) parts_[part] += terms[begin + part];
    }
    for (std::int64_t i = begin; i < count; ++i) parts_[i - begin] += terms[i];
  }

  Number total() { return add_half<kParts / 2>(); }

 private:
  template <std::int64_t kHalf>
  Number add_half() {
    for (std::int64_t part = 0; part < kHalf; ++part) parts_[part] += parts_[kHalf + part];
    if constexpr (kHalf > 1) return add_half<kHalf / 2>();
    return parts_[0];
  }

  Number parts_[kParts]{};
};

// Returns the sum of term(element i of each row) over `count` elements.
template <class Number, class Term, class... In>
inline Number sum_of(std::int64_t count, const Term& term, const In*... from) {
  Sums<Number> sums;
  constexpr std::int64_t kParts = Sums<Number>::kParts;
  const auto add = [&](std::int64_t begin, std::int64_t length) {
    if constexpr (kAnyNarrow<In...>) {
      for (std::int64_t k = 0; k < length / 2; ++k) {
        sums[k] += term(pair_at(from + begin, k).even...);
        sums[kParts / 2 + k] += term(pair_at(from + begin, k).odd...);
      }
      if (length % 2 != 0) sums[length / 2] += term(Accumulator<In>(from[begin + length - 1])...);
    } else {
      for (std::int64_t i = 0; i < length; ++i) sums[i] += term(from[begin + i]...);
    }
  };
  std::int64_t begin = 0;
  for (; begin + kParts <= count; begin += kParts) add(begin, kParts);
  if (begin < count) add(begin, count - begin);
  return sums.total();
}

}  // namespace penstock::nn::kernels
