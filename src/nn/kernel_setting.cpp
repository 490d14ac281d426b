// SPDX-License-Identifier: Apache-2.0
#include "nn/kernel_setting.h"

#include "nn/kernels/attention.h"
#include "nn/kernels/matmul.h"
#include "nn/stage_parameters.h"

namespace penstock::nn {
namespace {

model::NarrowProducts narrow_products() {
  switch (kernels::fastest_bf16_products()) {
    case kernels::Bf16Products::Tiled:
      return model::NarrowProducts::Tiled;
    case kernels::Bf16Products::Summed:
      return __builtin_cpu_supports("amx-bf16") ? model::NarrowProducts::SummedAmx
                                                : model::NarrowProducts::Summed;
    case kernels::Bf16Products::Native:
      return model::NarrowProducts::Rounded;
    case kernels::Bf16Products::Widened:
      return model::NarrowProducts::Widened;
  }
  return model::NarrowProducts::Rounded;
}

}  // namespace

model::KernelSetting kernel_setting(model::Precision precision, int threads) {
  const bool tiled = kernels::fastest_attention(compute_type(precision)) == kernels::AttentionKernel::Tiled;
  return {precision, narrow_products(), tiled, threads};
}

}  // namespace penstock::nn
