// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/attention/avx512_choice.h"

#include <cpuid.h>

#include "nn/kernels/cpu/attention/avx512.h"

namespace penstock::nn::kernels::avx512 {
namespace {

// GCC's __builtin_cpu_supports knows AMX only from version 14 on: leaf 7, EDX, bit 22.
bool has_amx_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1u) != 0;
}

bool has_instructions() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("fma") && !has_amx_bf16();
}

}  // namespace

bool fits(const at::Tensor& query) {
  static const bool available = has_instructions();
  return available && query.size(-1) % kPanel == 0;
}

}  // namespace penstock::nn::kernels::avx512
