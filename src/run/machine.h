// SPDX-License-Identifier: Apache-2.0
// The machine's properties that a run's memory and choices depend on: probed by `train`
// (train/machine_probe.h) or assumed. Resolving a run probes nothing itself.
#pragma once

#include <array>

#include "model/memory/kernels.h"
#include "model/shape.h"
#include "sim/costs/hardware.h"

namespace penstock::run {

struct Machine {
  int threads = 1;                                                // per rank, if train.threads = 0
  model::NarrowProducts products = model::NarrowProducts::Tiled;  // in bf16
  std::array<bool, 3> tiled_attention{false, true, true};         // [Precision]: own kernel, not LibTorch's
  sim::Hardware hardware = sim::assumed_hardware();               // for the choices of "auto"

  model::KernelSetting kernels(model::Precision precision, int threads_of_rank) const {
    return {precision, products, tiled_attention[static_cast<std::size_t>(precision)], threads_of_rank};
  }
};

}  // namespace penstock::run
