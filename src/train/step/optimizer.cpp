// SPDX-License-Identifier: Apache-2.0
#include "train/step/optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backend/device.h"
#include "base/error.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/square_sum.h"

namespace penstock::train {

double learning_rate(const run::TrainOptions& options, std::int64_t step) {
  if (step <= options.warmup_steps) {
    return options.lr * static_cast<double>(step) / static_cast<double>(options.warmup_steps);
  }
  if (options.lr_schedule == "constant") return options.lr;
  const double done = static_cast<double>(step - options.warmup_steps) /
                      static_cast<double>(std::max<std::int64_t>(1, options.steps - options.warmup_steps));
  const double height = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(1.0, done)));
  return options.min_lr + (options.lr - options.min_lr) * height;
}

double clip_scale(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1.0; }

Optimizer::Optimizer(const std::vector<nn::Parameter*>& parameters, const run::TrainOptions& options)
    : beta1_(options.betas.at(0)), beta2_(options.betas.at(1)), epsilon_(options.eps) {
  for (nn::Parameter* parameter : parameters) {
    const auto updates_its_master = [&](const Entry& entry) {
      return entry.parameter->master.is_same(parameter->master);
    };
    if (std::ranges::any_of(entries_, updates_its_master)) continue;
    Entry entry{.parameter = parameter};
    entry.first_moment = at::zeros_like(parameter->master);
    entry.second_moment = at::zeros_like(parameter->master);
    const bool decays = options.decay == "all" || parameter->is_matrix;
    entry.weight_decay = decays ? options.weight_decay : 0.0;
    entries_.push_back(std::move(entry));
  }
}

ExactSum Optimizer::square_sums() const {
  std::vector<at::Tensor> gradients;
  for (const Entry& entry : entries_) {
    const nn::Parameter& parameter = *entry.parameter;
    if (parameter.written().count > 0)
      gradients.push_back(parameter.written_part(parameter.own_part(parameter.gradient)));
  }
  return nn::kernels::square_sum(gradients);
}

void Optimizer::update(double lr, double gradient_scale) {
  const nn::BlockScope scope(nn::Block::Optimizer);
  ++updates_;
  const at::Tensor count = at::full({}, static_cast<float>(updates_), backend::on_device(at::kFloat));
  for (Entry& entry : entries_) {
    nn::Parameter& parameter = *entry.parameter;
    at::Tensor gradient = parameter.own_part(parameter.gradient);
    PENSTOCK_CHECK(gradient.sizes() == parameter.master.sizes(), "a GPU's update goes by the sizes");
    if (gradient_scale != 1.0) gradient.mul_(gradient_scale);
    // Reads the gradient, reads and writes the master and two moments.
    const nn::KernelTimer timer(nn::Kernel::Adam,
                                {.bytes = 7.0 * static_cast<double>(parameter.master.nbytes())});
    at::_fused_adamw_({parameter.master}, {gradient}, {entry.first_moment}, {entry.second_moment}, {},
                      {count}, lr, beta1_, beta2_, entry.weight_decay, epsilon_, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

}  // namespace penstock::train
