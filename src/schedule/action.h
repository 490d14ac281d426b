// SPDX-License-Identifier: Apache-2.0
// One entry of a schedule: what to compute for one (stage, micro-batch, slice).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "schedule/key.h"

namespace penstock::schedule {

// The letters are those of the zero-bubble papers and of PyTorch's pipeline CSV.
enum class Kind : std::uint8_t {
  Idle,             // an empty cell
  Forward,          // F
  Backward,         // B: input and weight gradients
  BackwardInput,    // I
  BackwardWeight,   // W
  ReduceGradients,  // REDUCE_GRAD: synchronises a stage's gradients; has no micro-batch
};

// In idle cells all numbers are 0.
struct Action {
  [[no_unique_address]] Key key;
  Kind kind = Kind::Idle;
  bool overlaps_next = false;  // runs together with the action after it (PyTorch's OVERLAP_F_B)

  friend auto operator<=>(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 12);

inline bool is_backward(Kind kind) { return kind == Kind::Backward || kind == Kind::BackwardInput; }
inline bool is_compute(Kind kind) { return kind >= Kind::Forward && kind <= Kind::BackwardWeight; }

inline Action forward(int stage, int micro_batch, int slice = 0) {
  return {make_key(stage, micro_batch, slice), Kind::Forward, false};
}
inline Action backward(int stage, int micro_batch, int slice = 0) {
  return {make_key(stage, micro_batch, slice), Kind::Backward, false};
}
inline Action backward_input(int stage, int micro_batch, int slice = 0) {
  return {make_key(stage, micro_batch, slice), Kind::BackwardInput, false};
}
inline Action backward_weight(int stage, int micro_batch, int slice = 0) {
  return {make_key(stage, micro_batch, slice), Kind::BackwardWeight, false};
}

}  // namespace penstock::schedule

template <>
struct std::hash<penstock::schedule::Action> {
  std::size_t operator()(const penstock::schedule::Action& a) const noexcept {
    return penstock::schedule::scattered(packed(a.key) ^ static_cast<std::uint64_t>(a.kind) << 8);
  }
};
