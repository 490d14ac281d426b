// SPDX-License-Identifier: Apache-2.0
// The losses of a stage's routers (Fedus et al. 2021, equations 4 to 6; Zoph et al. 2022, equation 5;
// docs/moe.md, "Losses of the routers"). Both cover the tokens of a whole micro-batch, although it is split
// into slices and over ranks: all slices go forward before any goes backward, so the sums that the gradient
// needs are complete by then.
// T tokens per micro-batch, M micro-batches per step, W tokens per window (T or M·T), c_e = slots of the
// window that chose expert e. Per layer:
//   balance loss = β · E/(k·W²) · sum over e of c_e · sum over tokens of p_te    per window, β when balanced
//   z-loss       = β_z / T · sum over tokens of log_sum_exp²                     per micro-batch
// The step's loss is the mean over windows or micro-batches, summed over layers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "nn/experts/mixture.h"

namespace penstock::nn {

struct RouterLossOptions {
  double balance = 0;              // β
  double z = 0;                    // β_z
  std::int64_t tokens = 1;         // T, over all ranks that split a micro-batch
  std::int64_t micro_batches = 1;  // M, over all replicas
  bool over_step = false;          // window of the balance loss: the step, else a micro-batch
  // All-reduces counts over the ranks that have the window's tokens; empty: this rank has all of them.
  std::function<void(std::span<std::int64_t>)> sum;
};

// For one step and this rank's tokens.
struct RouterFacts {
  std::vector<std::vector<std::int64_t>> chosen;  // [layer][expert] rows
  std::vector<double> balance, z;                 // [layer] this rank's part of the losses
};

class RouterBalance {
 public:
  RouterBalance() = default;
  RouterBalance(const RouterLossOptions& options, std::int64_t layers, std::int64_t experts,
                std::int64_t chosen);

  // Adds what one slice's forward chose in a layer of the stage. Call in slice order.
  void add(int micro_batch, std::size_t layer, const MixtureRecord& record);

  // For the backward of any slice of the micro-batch, after all slices of the window were added. The first
  // call sums the window's counts: collective over the ranks that share the window.
  const RouteLosses& losses(int micro_batch, std::size_t layer);

  // Returns the facts of the ending step and resets them.
  RouterFacts take();

 private:
  struct Window {
    std::vector<std::int64_t> chosen;  // [layer · expert]
    std::vector<RouteLosses> losses;   // [layer], once complete
  };
  struct MicroBatch {
    std::vector<double> shares;   // [layer · expert] sums over tokens of p_te
    std::vector<double> squares;  // [layer] sums over tokens of log_sum_exp²
  };

  int window_of(int micro_batch) const { return options_.over_step ? 0 : micro_batch; }
  Window& window_at(int micro_batch);
  Window& complete(int micro_batch);
  std::size_t place(std::size_t layer) const { return layer * static_cast<std::size_t>(experts_); }

  RouterLossOptions options_;
  std::size_t layers_ = 0;
  std::int64_t experts_ = 0, chosen_ = 0;
  std::vector<std::vector<std::int64_t>> rows_;  // [layer][expert] of the step
  std::map<int, Window> windows_;
  std::map<int, MicroBatch> micro_batches_;
};

}  // namespace penstock::nn
