// SPDX-License-Identifier: Apache-2.0
// Gradients of a run in f64 against autograd on one process: of every parameter on every rank, before the
// optimizer changes it. So each copy of a norm and of a key head is checked by itself.
#pragma once

#include <gtest/gtest.h>

#include "nn/tensor_checks.h"
#include "train/small_run.h"

namespace penstock::testing {

constexpr double kGradientTolerance = 1e-10;

// Larger than initial weights, so that attention has something to choose, and norms that are not all one.
inline void draw_weights(train::Trainer& trainer) {
  std::vector<const void*> seen;
  for (nn::Parameter* parameter : trainer.parameters()) {
    if (std::ranges::count(seen, parameter->master.const_data_ptr()) > 0) continue;  // tied
    seen.push_back(parameter->master.const_data_ptr());
    if (parameter->is_matrix) {
      parameter->master.mul_(10);
      continue;
    }
    const at::Tensor whole =
        random_tensor(parameter->sizes, at::kDouble, parameter->name.size()).mul(0.2).add(1);
    const mesh::Shard share = parameter->share();
    parameter->master.copy_(whole.narrow(0, share.begin, share.count));
  }
  trainer.weights_from_masters();
}

// The model on one rank and by autograd.
struct Oracle {
  reference::Step step;
  double norm = 0;
};

// The same model, batch and sequences on one rank.
inline run::Options on_one_rank(const run::Options& options) {
  run::Options alone = small_options("1f1b", 1, 1, "f64");
  alone.model.shape = options.model.shape;
  alone.moe = options.moe;
  alone.data = options.data;
  alone.train.batch = options.train.batch;
  alone.train.micro_batch = options.train.micro_batch;
  return alone;
}

inline reference::RouterLosses router_losses_of(const run::Options& options) {
  const run::MoeOptions& moe = options.moe;
  return {moe.balance_coefficient, moe.z_coefficient, moe.balance_over == "step"};
}

// Every document of sequences that several share, as a sequence of its own.
inline std::vector<reference::MicroBatch> documents_alone(const std::vector<reference::MicroBatch>& batches) {
  std::vector<reference::MicroBatch> alone;
  for (const reference::MicroBatch& batch : batches) {
    if (!batch.documents.defined()) {
      alone.push_back(batch);
      continue;
    }
    for (std::int64_t sequence = 0; sequence < batch.tokens.size(0); ++sequence) {
      const at::Tensor starts = batch.documents[sequence];
      for (std::int64_t begin = 0, end = 0; begin < starts.size(0); begin = end) {
        while (end < starts.size(0) && starts[end].item<std::int64_t>() == begin) ++end;
        const auto part = [&](const at::Tensor& all) {
          return all.narrow(0, sequence, 1).narrow(1, begin, end - begin);
        };
        alone.push_back({part(batch.tokens), part(batch.targets)});
      }
    }
  }
  return alone;
}

inline Oracle make_oracle(const run::Options& options) {
  const run::Run run = planned(on_one_rank(options));
  reference::Weights weights;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    draw_weights(trainer);
    for (const nn::Parameter* parameter : trainer.parameters()) {
      if (!parameter->tied) weights[parameter->name] = parameter->master.clone();
    }
  });
  const auto batches = drawn_batches(run, 1);
  const double scale = 1.0 / static_cast<double>(tokens_of(batches).target_count);
  Oracle oracle{.step = reference::step(run.shape(), weights, documents_alone(batches), scale,
                                        router_losses_of(options))};
  for (const auto& [name, gradient] : oracle.step.gradients)
    oracle.norm = std::hypot(oracle.norm, gradient.norm().item<double>());
  return oracle;
}

inline const Oracle& oracle_of(const run::Options& options) {
  const model::Shape& shape = options.model.shape;
  using Key = std::vector<double>;
  static std::map<Key, Oracle> oracles;
  const auto number = [](auto value) { return static_cast<double>(value); };
  const Key key{number(shape.layers),
                number(shape.hidden),
                number(shape.heads),
                number(shape.kv_heads),
                number(shape.tied_embeddings),
                number(options.data.seq_len),
                number(options.train.batch),
                number(options.train.micro_batch),
                number(shape.experts),
                number(shape.experts_per_token),
                number(shape.normalised_experts),
                number(shape.head_norms),
                number(shape.shared_ffn),
                number(shape.shared_gate),
                options.moe.balance_coefficient,
                options.moe.z_coefficient,
                number(options.moe.balance_over == "step"),
                number(options.data.mask == "documents"),
                number(options.data.packing == "concat"),
                number(document_unit)};
  if (!oracles.contains(key)) oracles[key] = make_oracle(options);
  return oracles.at(key);
}

// The part of the parameter's gradient that a rank keeps moments of, flat.
inline at::Tensor part_of(const at::Tensor& whole, const nn::Parameter& parameter) {
  const mesh::Shard share = parameter.share();
  at::Tensor part = at::zeros({share.count}, whole.options());  // padding has none
  for (const mesh::Range& range : mesh::ranges_of(parameter.shard, parameter.sizes, share))
    part.narrow(0, range.own_begin, range.count)
        .copy_(whole.reshape({-1}).narrow(0, range.begin, range.count));
  return part;
}

// One rank's copy of a part of a parameter, and its gradient.
struct Copy {
  std::string name;
  mesh::Shard part, share;
  at::Tensor gradient;
};

// The gradients of one step, told by the first moments: after one step (1 - beta1) times the gradient.
struct Gradients {
  double loss = 0, norm = 0, router_loss = 0;
  std::vector<Copy> copies;  // of all ranks
};

inline Gradients gradients_of(const run::Run& run, const reference::Weights& wanted,
                              double tolerance = kGradientTolerance) {
  Gradients gradients;
  std::mutex mutex;
  on_ranks(run, [&](comm::Communicator& world) {
    train::Trainer trainer(run, world);
    draw_weights(trainer);
    const train::StepReport report = trainer.step(1, tokens_of(run, world.rank(), drawn_batches(run, 1)));
    const std::lock_guard lock(mutex);
    gradients.loss = report.loss;
    gradients.norm = report.grad_norm;
    if (report.load) gradients.router_loss = report.load->balance_loss + report.load->z_loss;
    for (const train::Optimizer::Entry& entry : trainer.optimizer().entries()) {
      const nn::Parameter& parameter = *entry.parameter;
      const at::Tensor& whole = wanted.at(parameter.tied ? "model.embed_tokens.weight" : parameter.name);
      const at::Tensor got = entry.first_moment.reshape({-1}) / (1 - run.options.train.betas[0]);
      if (got.numel() == 0) continue;
      const double scale = std::max(whole.abs().max().item<double>(), 1e-30);  // 0: an expert without tokens
      expect_near(got / scale, part_of(whole, parameter) / scale, tolerance,
                  parameter.name + " on rank " + std::to_string(world.rank()));
      gradients.copies.push_back({parameter.name, parameter.shard, parameter.share(), got});
    }
  });
  return gradients;
}

// One step of the run, against autograd: loss, gradient norm and every gradient.
inline Gradients expect_autograd(const run::Options& options, double tolerance = kGradientTolerance) {
  const Oracle& wanted = oracle_of(options);
  const Gradients got = gradients_of(planned(options), wanted.step.gradients, tolerance);
  EXPECT_NEAR(got.loss, wanted.step.loss, tolerance * wanted.step.loss);
  EXPECT_NEAR(got.norm, wanted.norm, tolerance * wanted.norm);
  EXPECT_NEAR(got.router_loss, wanted.step.router_loss, 1e-12 * (1 + wanted.step.router_loss));
  return got;
}

}  // namespace penstock::testing
