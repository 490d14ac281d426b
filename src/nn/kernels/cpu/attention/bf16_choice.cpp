// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/bf16_choice.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels {
namespace {

bool has_avx512() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("fma");
}

// GCC's __builtin_cpu_supports knows AMX only from version 14 on: leaf 7, EDX, bits 22 (bf16) and 24 (tiles).
bool has_amx() {
  constexpr unsigned kBits = 1u << 22 | 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBits) == kBits;
}

// Linux gives a process the tiles' registers only when it asks (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool may_use_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

Bf16Attention fastest() {
  if (!has_avx512()) return Bf16Attention::Brgemm;
  if (!has_amx()) return Bf16Attention::Avx512;
  return may_use_tiles() ? Bf16Attention::Amx : Bf16Attention::Brgemm;
}

}  // namespace

Bf16Attention bf16_attention(const at::Tensor& query) {
  static const Bf16Attention chosen = fastest();
  return query.size(-1) % avx512::kPanel == 0 ? chosen : Bf16Attention::Brgemm;
}

}  // namespace penstock::nn::kernels
