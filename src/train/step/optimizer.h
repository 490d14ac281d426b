// SPDX-License-Identifier: Apache-2.0
// AdamW over the master weights of one rank (Loshchilov and Hutter 2019), with decoupled weight decay.
//
// Bits do not depend on how parameters are distributed over ranks: an element's update depends on other
// elements only through the gradient norm, the root of an exact sum.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/exact_sum.h"
#include "nn/parameters/parameter.h"
#include "run/options.h"

namespace penstock::train {

// Learning rate of step 1, 2, ..., steps: linear from 0 over warmup_steps, then a cosine to min_lr at the
// last step, or constant lr.
double learning_rate(const run::TrainOptions& options, std::int64_t step);

// The factor that brings the gradient's norm to at most `clip`; 1 if it already is, or if clip is 0 (off).
double clip_scale(double norm, double clip);

class Optimizer {
 public:
  struct Entry {
    nn::Parameter* parameter = nullptr;
    at::Tensor first_moment;  // the master's type, f32 or f64
    at::Tensor second_moment;
    double weight_decay = 0;
  };

  // The parameters must outlive the optimizer. Of parameters that share a master only the first is updated.
  // Copies have their own moments, which stay equal to the owner's if both get the same gradient.
  Optimizer(const std::vector<nn::Parameter*>& parameters, const run::TrainOptions& options);

  // Sum of squares of the gradient parts that only this rank counts (Parameter::written); added over all
  // ranks it is the whole gradient's.
  ExactSum square_sums() const;

  // Multiplies the gradients' own parts by gradient_scale, then updates moments and masters. The stage
  // updates separate weights (bf16).
  void update(double lr, double gradient_scale);

  std::vector<Entry>& entries() { return entries_; }
  std::int64_t updates() const { return updates_; }  // done so far; with the moments, the whole state
  void set_updates(std::int64_t updates) { updates_ = updates; }

 private:
  std::vector<Entry> entries_;
  double beta1_, beta2_, epsilon_;
  std::int64_t updates_ = 0;
};

}  // namespace penstock::train
