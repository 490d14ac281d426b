// SPDX-License-Identifier: Apache-2.0
// AdamW over the master weights of one rank (Loshchilov and Hutter 2019), with decoupled weight decay.
//
// Bits do not depend on how parameters are distributed over ranks: every parameter is updated by its own
// call, and the gradient norm adds the parameters' square sums in the model's order. They depend on the
// threads per rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameter.h"
#include "run/options.h"

namespace penstock::train {

// Of step 1, 2, ..., steps: linear from 0 over warmup_steps, then a cosine to min_lr at the last step, or lr.
double learning_rate(const run::TrainOptions& options, std::int64_t step);

// Square sum in f64 of an f32 or f64 tensor (contiguous), in an order that depends on its size alone.
double square_sum(const at::Tensor& gradient);

// The norm of the whole gradient from the square sums of all parameters in the model's order. Not finite when
// some gradient is not; the caller handles that.
double gradient_norm(const std::vector<double>& square_sums);

// The factor that brings the gradient's norm to at most `clip`; 1 if it already is, or if clip is 0 (off).
double clip_scale(double norm, double clip);

class Optimizer {
 public:
  struct Entry {
    nn::Parameter* parameter = nullptr;
    at::Tensor first_moment;  // the master's type, f32 or f64
    at::Tensor second_moment;
    double weight_decay = 0;
    std::size_t place = 0;  // in the model's order
  };

  // The parameters must outlive the optimizer. Of parameters that share a master the first is updated. Copies
  // have their own moments, which stay equal to the owner's if both get the same gradient. `names`: all
  // parameters of the model in its order.
  Optimizer(const std::vector<nn::Parameter*>& parameters, const std::vector<std::string>& names,
            const run::TrainOptions& options);

  // One number per name: the gradient's square sum over the part that this rank owns, or 0. Added over all
  // ranks, in rank order, they have the same bits everywhere.
  std::vector<double> square_sums() const;

  // Multiplies the gradients by gradient_scale, then updates moments and masters. The stage updates separate
  // weights (bf16).
  void update(double lr, double gradient_scale);

  std::vector<Entry>& entries() { return entries_; }
  std::int64_t updates() const { return updates_; }  // done so far; with the moments, the whole state
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  std::vector<Entry> entries_;
  std::size_t names_ = 0;
  double beta1_, beta2_, epsilon_;
  std::int64_t updates_ = 0;
};

}  // namespace penstock::train
