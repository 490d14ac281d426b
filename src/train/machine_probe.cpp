// SPDX-License-Identifier: Apache-2.0
#include "train/machine_probe.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "backend/clock.h"
#include "backend/device.h"
#include "base/clock.h"
#include "comm/texts.h"
#include "nn/kernel_setting.h"
#include "nn/kernels/matmul.h"

namespace penstock::train {
namespace {

// Type of the operands that training multiplies.
at::ScalarType type_of_operands(model::Precision precision) {
  if (precision == model::Precision::F64) return at::kDouble;
  const bool narrow = precision == model::Precision::BF16 &&
                      nn::kernels::fastest_bf16_products() != nn::kernels::Bf16Products::Widened;
  return narrow ? at::kBFloat16 : at::kFloat;
}

// The fastest of several products of square matrices.
Seconds seconds_of_product(std::int64_t size, at::ScalarType type) {
  constexpr int least_repeats = 3;
  const bool on_gpu = !backend::compute_device().is_cpu();
  const Seconds budget = on_gpu ? 0.04 : 0.004;
  // On the CPU, uses memory that returns to the system: tensors would leave cached blocks that a small model
  // cannot use.
  const auto bytes = on_gpu ? 0 : static_cast<std::size_t>(size * size) * at::elementSize(type);
  std::vector<std::byte> from(bytes), to(bytes);
  const auto square = [&](std::vector<std::byte>& memory) {
    if (on_gpu) return at::empty({size, size}, backend::on_device(type));
    return at::from_blob(memory.data(), {size, size}, at::dtype(type));
  };
  at::Tensor a = square(from).fill_(1), product = square(to);
  nn::kernels::product_into(product, a, a);  // the first call includes set-up
  backend::DeviceClock clock;
  const Seconds began = clock.restart();
  Seconds fastest = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < least_repeats || steady_seconds() - began < budget; ++repeat) {
    clock.restart();
    nn::kernels::product_into(product, a, a);
    fastest = std::min(fastest, clock.seconds(backend::moment_now()));
  }
  return fastest;
}

}  // namespace

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
  // On a busy core any product may be interrupted: a small one that took long does not end the search.
  constexpr std::int64_t least = 128, least_greatest = 512;
  constexpr Seconds long_enough = 1e-3;
  const std::int64_t greatest = backend::compute_device().is_cpu() ? 1024 : 8192;
  double best = 0;
  for (std::int64_t size = least; size <= greatest; size *= 2) {
    Seconds fastest = 0;
    try {
      fastest = seconds_of_product(size, type_of_operands(precision));
    } catch (const c10::OutOfMemoryError&) {
      if (best > 0) break;  // a run's states nearly fill the GPU
      throw;
    }
    best = std::max(best, 2.0 * static_cast<double>(size * size * size) / fastest);
    if (size >= least_greatest && fastest >= long_enough) break;
  }
  return best;
}

Flops measure_part_of_rate(model::Precision precision, comm::Communicator& world) {
  const std::optional<backend::Gpu> gpu = backend::gpu();
  if (!gpu) return measure_matmul_rate(precision);  // every rank has its own share of the cores
  const std::vector<std::string> gpus = comm::all_texts(gpu->id, world);
  const bool first = std::ranges::find(gpus, gpu->id) - gpus.begin() == world.rank();
  return first ? measure_matmul_rate(precision) : 0;
}

}  // namespace penstock::train
