// SPDX-License-Identifier: Apache-2.0
// AMX's tile registers: eight, each with 16 rows of 64 bytes. Include only in files whose code is chosen at
// run time (amx_attention.cpp).
//
// GCC 12's intrinsics do not tell the compiler that tile loads read memory, so these are our own.
#pragma once

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels::amx {

inline constexpr std::int64_t kSide = 16;         // rows per tile, and words per row
inline constexpr std::int64_t kRows = 2 * kSide;  // rows of a block of sums; its columns are a panel

#define PENSTOCK_AMX_INLINE __attribute__((always_inline)) inline

// Strides are in bytes.
template <int Tile>
PENSTOCK_AMX_INLINE void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
PENSTOCK_AMX_INLINE void store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
PENSTOCK_AMX_INLINE void clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
// sum [16, 16] += a [16, 32] · b [32, 16]; b's rows are interleaved in pairs
template <int Sum, int A, int B>
PENSTOCK_AMX_INLINE void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(A), "i"(B));
}

// While alive, all tile registers of this thread are configured as whole tiles.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) Shape {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static_assert(sizeof(Shape) == 64);
    const Shape shape;
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// A block of sums [32, 32] in registers 0 to 3; `stride` is its row stride in memory, in floats.
PENSTOCK_AMX_INLINE void clear_sums() {
  clear<0>();
  clear<1>();
  clear<2>();
  clear<3>();
}
PENSTOCK_AMX_INLINE void load_sums(const float* from, std::int64_t stride) {
  load<0>(from, 4 * stride);
  load<1>(from + kSide, 4 * stride);
  load<2>(from + kSide * stride, 4 * stride);
  load<3>(from + kSide * stride + kSide, 4 * stride);
}
PENSTOCK_AMX_INLINE void store_sums(float* to, std::int64_t stride) {
  store<0>(to, 4 * stride);
  store<1>(to + kSide, 4 * stride);
  store<2>(to + kSide * stride, 4 * stride);
  store<3>(to + kSide * stride + kSide, 4 * stride);
}

// sums += a [32, 2·words] · b [2·words, 32]. b is a panel, `words` a multiple of 16, a_stride in words.
PENSTOCK_AMX_INLINE void multiply_block(const Word* a, std::int64_t a_stride, std::int64_t words,
                                        const Word* b) {
  for (std::int64_t word = 0; word < words; word += kSide) {
    load<4>(a + word, 4 * a_stride);
    load<6>(b + word * kPanel, 4 * kPanel);
    load<7>(b + word * kPanel + kSide, 4 * kPanel);
    multiply<0, 4, 6>();
    multiply<1, 4, 7>();
    load<5>(a + kSide * a_stride + word, 4 * a_stride);
    multiply<2, 5, 6>();
    multiply<3, 5, 7>();
  }
}

}  // namespace penstock::nn::kernels::amx
