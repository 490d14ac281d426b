// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/products_choice.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nn/kernels/cpu/attention/tiles.h"

namespace penstock::nn::kernels {
namespace {

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("fma");
}

bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

// GCC's __builtin_cpu_supports knows AMX only from version 14 on: leaf 7, EDX, bits 22 (bf16) and 24 (tiles).
bool has_amx() {
  constexpr unsigned kBits = 1u << 22 | 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBits) == kBits;
}

// Linux lets a process use tile registers only after a request (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool may_use_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

std::vector<AttentionProducts> products_of(bool narrow) {
  std::vector<AttentionProducts> result;
  const bool avx512 = has_avx512() && (!narrow || __builtin_cpu_supports("avx512bf16"));
  if (avx512 && narrow && has_amx() && may_use_tiles()) result.push_back(AttentionProducts::Amx);
  if (avx512) result.push_back(AttentionProducts::Avx512);
  if (!narrow && has_avx2()) result.push_back(AttentionProducts::Avx2);
  result.push_back(AttentionProducts::Brgemm);
  return result;
}

}  // namespace

std::vector<AttentionProducts> possible_products(c10::ScalarType type, std::int64_t head_size) {
  static const std::vector<AttentionProducts> single = products_of(false), narrow = products_of(true);
  if (head_size % kPanel != 0) return {AttentionProducts::Brgemm};
  return type == c10::ScalarType::BFloat16 ? narrow : single;
}

}  // namespace penstock::nn::kernels
