// SPDX-License-Identifier: Apache-2.0
#include "train/step/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "nn/kernels/profile.h"

namespace penstock::train {
namespace {

constexpr std::int64_t kBlock = 1 << 14;  // elements summed at a time
constexpr std::int64_t kLanes = 8;        // partial sums of a block, so that the loop can be vectorised

template <class T>
double block_square_sum(const T* values, std::int64_t count) {
  std::array<double, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

template <class T>
double tensor_square_sum(const at::Tensor& tensor) {
  const T* values = tensor.const_data_ptr<T>();
  const std::int64_t count = tensor.numel();
  std::vector<double> blocks(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  at::parallel_for(0, static_cast<std::int64_t>(blocks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      blocks[block] = block_square_sum(values + block * kBlock, std::min(kBlock, count - block * kBlock));
    }
  });
  double sum = 0;
  for (const double block : blocks) sum += block;
  return sum;
}

}  // namespace

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

double square_sum(const at::Tensor& gradient) {
  PENSTOCK_CHECK(gradient.is_contiguous(), "gradients are contiguous");
  return gradient.scalar_type() == at::kDouble ? tensor_square_sum<double>(gradient)
                                               : tensor_square_sum<float>(gradient);
}

double gradient_norm(const std::vector<double>& square_sums) {
  double sum = 0;
  for (const double square : square_sums) sum += square;
  return std::sqrt(sum);
}

double clip_scale(double norm, double clip) { return clip > 0 && norm > clip ? clip / norm : 1.0; }

Optimizer::Optimizer(const std::vector<nn::Parameter*>& parameters, const std::vector<std::string>& names,
                     const run::TrainOptions& options)
    : names_(names.size()), beta1_(options.betas.at(0)), beta2_(options.betas.at(1)), epsilon_(options.eps) {
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
    if (nn::owns(*parameter)) {
      const auto found = std::ranges::find(names, parameter->name);
      PENSTOCK_CHECK(found != names.end(), "every parameter has a place in the model's order");
      entry.place = static_cast<std::size_t>(found - names.begin());
    }
    entries_.push_back(std::move(entry));
  }
}

std::vector<double> Optimizer::square_sums() const {
  std::vector<double> sums(names_);
  for (const Entry& entry : entries_) {
    if (nn::owns(*entry.parameter)) sums[entry.place] = square_sum(entry.parameter->gradient);
  }
  return sums;
}

void Optimizer::update(double lr, double gradient_scale) {
  const nn::BlockScope scope(nn::Block::Optimizer);
  ++updates_;
  const at::Tensor count = at::full({}, static_cast<float>(updates_), at::kFloat);
  for (Entry& entry : entries_) {
    nn::Parameter& parameter = *entry.parameter;
    if (gradient_scale != 1.0) parameter.gradient.mul_(gradient_scale);
    // Reads the gradient, reads and writes the master and two moments.
    const nn::KernelTimer timer(nn::Kernel::Adam,
                                {.bytes = 7.0 * static_cast<double>(parameter.master.nbytes())});
    at::_fused_adamw_({parameter.master}, {parameter.gradient}, {entry.first_moment}, {entry.second_moment},
                      {}, {count}, lr, beta1_, beta2_, entry.weight_decay, epsilon_, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

}  // namespace penstock::train
