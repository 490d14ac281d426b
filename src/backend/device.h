// SPDX-License-Identifier: Apache-2.0
// Where a rank's tensors live. cpu/ and cuda/ are twins; a program is linked with one of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "base/units.h"

namespace penstock::backend {

// The CPU, or the GPU of this rank.
c10::Device compute_device();

// Throws InputError if the program is built for a GPU and the machine has no usable one. Otherwise sets
// whether the GPU's kernels must repeat their bits (numerics.repeatable).
void require_device(bool repeatable = true);

// The GPU of this thread, as reported by its driver; nullopt on the CPU or without a GPU.
struct Gpu {
  std::string name;
  int gpus = 1;  // number on this machine that this process may use
  Bytes total = 0, free = 0;
  std::string id;  // unique per GPU, the same in all processes
};
std::optional<Gpu> gpu();
// The GPU that take_turn(turn) would select. Does not select it, but the process then holds memory on it.
std::optional<Gpu> gpu_of_turn(int turn);

// Binds the calling thread to the machine's GPU `turn` modulo their number, and to a pool stream there.
// `turn` is the rank's index on its machine. Call before any other use of a GPU by the thread, since each
// GPU it touches holds memory for the process. No-op on the CPU or without a GPU.
void take_turn(int turn);

// Options for a new tensor on the compute device.
inline at::TensorOptions on_device(at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(compute_device());
}

// Moves a tensor to the compute device (an undefined one stays undefined) or to host memory. Returns the
// tensor itself if it is already there, else a copy, after waiting for the tensor's computation.
inline at::Tensor to_device(const at::Tensor& x) { return x.defined() ? x.to(compute_device()) : x; }
inline at::Tensor to_host(const at::Tensor& x) { return x.cpu(); }

// Calls work(values) on the tensor's values in host memory, and copies changes back.
template <class Work>
void change_on_host(const at::Tensor& x, Work&& work) {
  const at::Tensor values = to_host(x);
  work(values);
  if (!values.is_same(x)) x.copy_(values);
}

}  // namespace penstock::backend
