// SPDX-License-Identifier: Apache-2.0
// Where a rank's tensors live. cpu/ and cuda/ are twins; a program is linked with one of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "base/units.h"

namespace penstock::backend {

// The processor, or the card of this rank.
c10::Device compute_device();

// Throws InputError when the program computes on a card and the machine has none that it can use. From then
// on a card's kernels repeat their bits, or need not (numerics.repeatable).
void require_device(bool repeatable = true);

// The card of this thread, as its driver tells; nothing on the CPU, or where there is none.
struct Card {
  std::string name;
  int cards = 1;  // of this machine, that this process may use
  Bytes total = 0, free = 0;
  std::string id;  // another of every card, and the same to all processes that may use it
};
std::optional<Card> card();
// The one that take_turn(turn) takes, without taking it; the process then keeps memory on it.
std::optional<Card> card_of_turn(int turn);

// The calling thread computes on its own stream of a card, by turns of the machine's: `turn` is its number
// among the machine's ranks. Comes before all else that a thread does on a card, since each card that it
// touches keeps memory for its process. Does nothing on the CPU, or where there is no card.
void take_turn(int turn);

// The options of a new tensor of a type on the compute device.
inline at::TensorOptions on_device(at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(compute_device());
}

// The tensor on the compute device (undefined, if it is), or in the host's memory: itself where it is there
// already, else a copy, which waits for what computes it.
inline at::Tensor to_device(const at::Tensor& x) { return x.defined() ? x.to(compute_device()) : x; }
inline at::Tensor to_host(const at::Tensor& x) { return x.cpu(); }

// Calls work(values) with the tensor's values in the host's memory, and brings back what it changes.
template <class Work>
void change_on_host(const at::Tensor& x, Work&& work) {
  const at::Tensor values = to_host(x);
  work(values);
  if (!values.is_same(x)) x.copy_(values);
}

}  // namespace penstock::backend
