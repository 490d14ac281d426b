// SPDX-License-Identifier: Apache-2.0
#include "train/machine_probe.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <vector>

#include "base/clock.h"
#include "nn/kernel_setting.h"

namespace penstock::train {

run::Machine probe_machine(int threads) {
  run::Machine machine{.threads = threads};
  for (const auto precision : {model::Precision::F64, model::Precision::F32, model::Precision::BF16}) {
    const model::KernelSetting kernels = nn::kernel_setting(precision, threads);
    machine.products = kernels.products;
    machine.tiled_attention[static_cast<std::size_t>(precision)] = kernels.tiled_attention;
  }
  return machine;
}

Flops measure_matmul_rate(model::Precision precision) {
  constexpr std::int64_t least = 128, greatest = 1024;
  constexpr Seconds long_enough = 0.02, budget = 0.04;
  const auto type = precision == model::Precision::BF16  ? at::kBFloat16
                    : precision == model::Precision::F32 ? at::kFloat
                                                         : at::kDouble;
  // In memory returned to the system: tensors would leave cached blocks that a small model cannot use.
  const auto bytes = static_cast<std::size_t>(greatest * greatest) * at::elementSize(type);
  std::vector<std::byte> from(bytes), to(bytes);
  double best = 0;
  // A processor without instructions for the type takes seconds for the greatest product.
  Seconds taken = 0;
  for (std::int64_t size = least; size <= greatest && taken < long_enough; size *= 2) {
    const at::Tensor a = at::from_blob(from.data(), {size, size}, at::dtype(type)).fill_(1);
    at::Tensor product = at::from_blob(to.data(), {size, size}, at::dtype(type));
    at::mm_out(product, a, a);  // the first call includes set-up
    const Seconds began = steady_seconds();
    do {
      const Seconds start = steady_seconds();
      at::mm_out(product, a, a);
      taken = steady_seconds() - start;
      best = std::max(best, 2.0 * static_cast<double>(size * size * size) / taken);
    } while (size == greatest && steady_seconds() - began < budget);
  }
  return best;
}

}  // namespace penstock::train
