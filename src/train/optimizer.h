// SPDX-License-Identifier: Apache-2.0
// AdamW over the master weights of one rank (Loshchilov and Hutter 2019), with decoupled weight decay.
//
// Bits do not depend on how parameters are spread over ranks: every parameter is updated by a call of its
// own, and the gradient norm sums the parameters' square sums in the model's order, wherever they live. They
// do depend on the threads per rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameter.h"
#include "train/options.h"

namespace penstock::train {

// Of step 1, 2, ..., steps: a straight rise from 0 over warmup_steps, then the cosine to min_lr at the last
// step, or lr.
double learning_rate(const TrainOptions& options, std::int64_t step);

// Square sum in f64 of an f32 or f64 tensor (contiguous), in an order that depends on its size alone.
double square_sum(const at::Tensor& gradient);

// The norm of the whole gradient from the square sums of all parameters in the model's order. Not finite when
// some gradient is not: what to do then is the caller's to decide.
double gradient_norm(const std::vector<double>& square_sums);

// What the gradient is multiplied with so that its norm is at most `clip`; 1 when it is, or when clip is 0
// (off).
double clip_scale(double norm, double clip);

class Optimizer {
 public:
  struct Entry {
    nn::Parameter* parameter = nullptr;
    at::Tensor first_moment;  // as the master, f32 or f64
    at::Tensor second_moment;
    double weight_decay = 0;
    std::size_t place = 0;  // in the model's order
  };

  // The parameters outlive the optimizer. Aliases are left out: their owner is updated. Copies have moments
  // of their own, which stay equal to the owner's when both see the same gradient. `names` are all parameters
  // of the model in its order.
  Optimizer(const std::vector<nn::Parameter*>& parameters, const std::vector<std::string>& names,
            const TrainOptions& options);

  // One number for each name: the square sum of its gradient when it lives here (not as a copy or alias),
  // else 0. Added over all ranks, in any order, they are the same bits everywhere.
  std::vector<double> square_sums() const;

  // Multiplies the gradients by gradient_scale, then updates moments and masters. Weights that are no masters
  // (bf16) are the stage's to renew.
  void update(double lr, double gradient_scale);

  std::vector<Entry>& entries() { return entries_; }
  std::int64_t updates() const { return updates_; }  // done so far; with the moments the whole state
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  std::vector<Entry> entries_;
  std::size_t names_ = 0;
  double beta1_, beta2_, epsilon_;
  std::int64_t updates_ = 0;
};

}  // namespace penstock::train
