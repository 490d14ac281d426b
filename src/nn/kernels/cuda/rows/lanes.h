// SPDX-License-Identifier: Apache-2.0
// CUDA kernels, written once for the GPU and for a host.
//
// A kernel is a struct of pointers and sizes with a function for one row, `operator()(lanes, row)`. On a GPU
// the threads of a warp or of a block compute a row; on a host, in tests, the same function loops in the same
// order. So tests cover the GPU's arithmetic, its indices and the order of its sums. Only a GPU shows its
// speed and whether threads synchronise where they must.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)
#define PENSTOCK_BOTH __host__ __device__
#else
#define PENSTOCK_BOTH
#endif

namespace penstock::nn::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kBlock = 256;  // threads per block

// The kCount lanes of a row: kWarp (a block computes several rows) or kBlock. All lanes of a row must call
// the same functions in the same order.
template <int kCount>
class Lanes {
 public:
  static_assert(kCount == kWarp || kCount == kBlock);
  static constexpr int kWarps = kCount / kWarp;

  // `shared`: on a GPU, space for kWarps values of a reduction, then the kernel's scratch memory; on a host,
  // the scratch memory.
  PENSTOCK_BOTH explicit Lanes(unsigned char* shared) : shared_(shared) {}

  // Calls work(i) for i in 0..count-1. A call must not read what another call wrote before wait(). The same i
  // always runs on the same lane.
  template <class Work>
  PENSTOCK_BOTH void each(std::int64_t count, Work&& work) const {
#if defined(__CUDA_ARCH__)
    for (std::int64_t i = lane(); i < count; i += kCount) work(i);
#else
    for (std::int64_t i = 0; i < count; ++i) work(i);
#endif
  }

  // Calls work() on one lane.
  template <class Work>
  PENSTOCK_BOTH void once(Work&& work) const {
#if defined(__CUDA_ARCH__)
    if (lane() == 0) work();
#else
    work();
#endif
  }

  // Adds atomically to the row's memory, which other lanes also add to.
  PENSTOCK_BOTH void add(unsigned long long* place, unsigned long long value) const {
#if defined(__CUDA_ARCH__)
    atomicAdd(place, value);
#else
    *place += value;
#endif
  }

  // Barrier: afterwards every lane sees what the others wrote before.
  PENSTOCK_BOTH void wait() const {
#if defined(__CUDA_ARCH__)
    if constexpr (kCount == kBlock) {
      __syncthreads();
    } else {
      __syncwarp();
    }
#endif
  }

  // Combines term(0) ... term(count-1): each lane its own terms in order, then the lanes of a warp as a tree,
  // then the warps in order. Every lane gets the result. `combine` is commutative.
  template <class Value, class Term, class Combine>
  PENSTOCK_BOTH Value reduce(std::int64_t count, Value start, Term&& term, Combine&& combine) const {
#if defined(__CUDA_ARCH__)
    Value value = start;
    for (std::int64_t i = lane(); i < count; i += kCount) value = combine(value, term(i));
    for (int apart = kWarp / 2; apart > 0; apart /= 2) value = combine(value, from_lane(value, apart));
    if constexpr (kWarps > 1) {
      auto* of_warps = reinterpret_cast<Value*>(shared_);
      wait();  // an earlier reduction's values may still be read
      if (lane() % kWarp == 0) of_warps[lane() / kWarp] = value;
      wait();
      value = of_warps[0];
      for (int warp = 1; warp < kWarps; ++warp) value = combine(value, of_warps[warp]);
    }
    return value;
#else
    Value total = start;
    for (int warp = 0; warp < kWarps; ++warp) {
      Value lanes[kWarp];
      for (int i = 0; i < kWarp; ++i) {
        lanes[i] = start;
        for (std::int64_t k = warp * kWarp + i; k < count; k += kCount) lanes[i] = combine(lanes[i], term(k));
      }
      for (int apart = kWarp / 2; apart > 0; apart /= 2) {
        for (int i = 0; i < apart; ++i) lanes[i] = combine(lanes[i], lanes[i + apart]);
      }
      total = warp == 0 ? lanes[0] : combine(total, lanes[0]);
    }
    return total;
#endif
  }

  template <class Number, class Term>
  PENSTOCK_BOTH Number sum(std::int64_t count, Term&& term) const {
    return reduce(count, Number(0), term, [](Number a, Number b) { return a + b; });
  }

  // The row's scratch memory, scratch_bytes() of the kernel. Only for rows of a whole block.
  template <class Value>
  PENSTOCK_BOTH Value* scratch() const {
    static_assert(kCount == kBlock);
#if defined(__CUDA_ARCH__)
    return reinterpret_cast<Value*>(shared_ + kWarps * kReduced);
#else
    return reinterpret_cast<Value*>(shared_);
#endif
  }

  static constexpr int kReduced = 16;  // maximum bytes of a reduction's value

 private:
#if defined(__CUDACC__)
  __device__ int lane() const { return static_cast<int>(threadIdx.x) % kCount; }

  template <class Value>
  __device__ static Value from_lane(const Value& value, int apart) {
    static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % 4 == 0 && sizeof(Value) <= kReduced);
    unsigned words[sizeof(Value) / 4];
    std::memcpy(words, &value, sizeof(Value));
    for (unsigned& word : words) word = __shfl_xor_sync(0xFFFFFFFFu, word, apart);
    Value result;
    std::memcpy(&result, words, sizeof(Value));
    return result;
  }
#endif

  unsigned char* shared_;
};

}  // namespace penstock::nn::kernels::cuda
