// SPDX-License-Identifier: Apache-2.0
// Profile of a rank's compute time: every kernel call with its block.
//
// Kernels time themselves. Without a profile on the calling thread, that costs one read of a thread-local
// pointer. A kernel that calls another kernel counts as one call.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/clock.h"
#include "base/units.h"

namespace penstock::nn {

enum class Kernel : std::uint8_t {
  Product,          // output of a linear layer
  ProductBackward,  // gradient of its input
  WeightGradient,
  Attention,
  AttentionBackward,
  Merge,       // merges partial attention
  Accumulate,  // sums in the accumulator type
  Norm,
  NormBackward,
  Rotation,
  RotationBackward,
  Swiglu,
  SwigluBackward,
  Loss,
  Embedding,
  EmbeddingBackward,
  Adam,
  Route,     // chooses experts
  Dispatch,  // orders token rows by expert
  Combine,   // returns expert rows to their tokens
};
inline constexpr int kKernels = 20;
std::string_view name_of(Kernel kernel);  // "product", "product backward", ...

enum class Block : std::uint8_t { Stream, Attention, FeedForward, WeightGradients, Output, Optimizer };
inline constexpr int kBlocks = 6;
std::string_view name_of(Block block);  // "residual stream" (norms and embedding), "attention", ...

struct KernelCall {
  Kernel kernel = Kernel::Product;
  Block block = Block::Stream;
  Seconds start = 0;  // on the device, since the profile began
  Seconds end = 0;
  double flops = 0;  // products and attention; 0 for memory-bound work
  double bytes = 0;  // read and written by memory-bound work
};

// Kernel calls of one thread. Not thread-safe.
class Profile {
 public:
  Profile() { restart(); }

  // Drops all calls and restarts the clock.
  void restart();
  // Waits until the device has finished all calls.
  std::vector<KernelCall> calls() const;

 private:
  friend class KernelTimer;
  struct Timed {
    KernelCall call;
    backend::Moment start, end;
  };
  std::vector<Timed> calls_;
  backend::DeviceClock clock_;
};

// While alive, this thread's kernel calls are recorded in the profile (null: not recorded).
class ProfileScope {
 public:
  explicit ProfileScope(Profile* profile);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile* previous_;
};

// Whether this thread's kernel calls are recorded now, so that their work must be known.
bool is_profiled();

// While alive, this thread's kernel calls count towards the block.
class BlockScope {
 public:
  explicit BlockScope(Block block);
  ~BlockScope();
  BlockScope(const BlockScope&) = delete;
  BlockScope& operator=(const BlockScope&) = delete;

 private:
  Block previous_;
};

// Times one kernel call, from here to the end of the scope. An outermost call begins with an operation
// boundary (boundary.h), whose work is not part of its time.
class KernelTimer {
 public:
  struct Work {
    double flops = 0;
    double bytes = 0;
  };
  KernelTimer(Kernel kernel, Work work);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  Profile* profile_ = nullptr;  // null: no profile, or another kernel is being timed
  Profile::Timed timed_;
};

}  // namespace penstock::nn
