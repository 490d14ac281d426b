// SPDX-License-Identifier: Apache-2.0
// A whole step through stages of one process, in the simplest legal order, and the data for it.
#pragma once

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "nn/reference_model.h"
#include "nn/stage.h"

namespace penstock::testing {

// How the backward is asked for.
enum class Backward {
  Whole,
  Split,
  SplitLate
};  // SplitLate: all weight gradients of a micro-batch after its inputs'

struct Cut {
  int stages = 1;
  std::vector<std::int64_t> slices;  // lengths; adds up to the sequence
  Backward backward = Backward::Whole;
};

struct StepResult {
  double loss = 0;               // scaled
  reference::Weights gradients;  // tied: the two sides added
};

inline std::vector<model::KeepSet> part_of_layers(const std::vector<model::KeepSet>& keep, std::int64_t first,
                                                  std::int64_t count) {
  return keep.empty() ? keep : std::vector(keep.begin() + first, keep.begin() + first + count);
}

// `keep` is what each layer of the model keeps; empty: everything.
inline std::vector<nn::Stage> make_stages(const model::Shape& shape, model::Precision precision, int stages,
                                          std::int64_t max_positions, std::int64_t tile = 512,
                                          const std::vector<model::KeepSet>& keep = {}) {
  const nn::kernels::RotaryTable rotary = nn::rotary_table(shape, max_positions, precision);
  std::vector<nn::Stage> result;
  std::int64_t first = 0;
  for (int s = 0; s < stages; ++s) {
    const std::int64_t count = shape.layers / stages + (s < shape.layers % stages ? 1 : 0);
    result.emplace_back(nn::StageOptions{.shape = shape,
                                         .layers = {first, count},
                                         .first = s == 0,
                                         .last = s + 1 == stages,
                                         .precision = precision,
                                         .seed = 7,
                                         .loss_tile_tokens = tile,
                                         .rotary = rotary,
                                         .keep = part_of_layers(keep, first, count)});
    first += count;
  }
  return result;
}

inline reference::MicroBatch random_batch(const model::Shape& shape, std::int64_t b, std::int64_t s,
                                          std::uint64_t seed) {
  reference::MicroBatch batch{at::empty({b, s}, at::kLong), at::empty({b, s}, at::kLong)};
  for (std::int64_t i = 0; i < b * s; ++i) {
    const auto draw = [&](std::uint64_t stream) {
      return static_cast<std::int64_t>(random_bits(stream_key(seed, stream), static_cast<std::uint64_t>(i)) %
                                       static_cast<std::uint64_t>(shape.vocab));
    };
    batch.tokens.data_ptr<std::int64_t>()[i] = draw(1);
    batch.targets.data_ptr<std::int64_t>()[i] = i % 5 == 4 ? -1 : draw(2);  // some tokens without a target
  }
  return batch;
}

inline double forward_all(std::vector<nn::Stage>& stages, const reference::MicroBatch& batch, int micro_batch,
                          const std::vector<std::int64_t>& slices, double loss_scale) {
  double loss = 0;
  std::int64_t position = 0;
  for (int slice = 0; slice < static_cast<int>(slices.size()); ++slice) {
    const std::int64_t length = slices[slice];
    at::Tensor hidden;
    for (nn::Stage& stage : stages) {
      const auto output = stage.forward({.key = {micro_batch, slice},
                                         .place = {batch.tokens.size(0), length, position},
                                         .tokens = {batch.tokens.narrow(1, position, length)},
                                         .hidden = hidden,
                                         .targets = {batch.targets.narrow(1, position, length)},
                                         .loss_scale = loss_scale});
      hidden = output.hidden;
      loss += output.loss_sum.value();
    }
    position += length;
  }
  return loss * loss_scale;
}

inline void backward_all(std::vector<nn::Stage>& stages, int micro_batch, int slices, Backward how) {
  for (int slice = slices; slice-- > 0;) {
    at::Tensor grad;
    for (std::size_t s = stages.size(); s-- > 0;) {
      const nn::SliceKey key{micro_batch, slice};
      grad = how == Backward::Whole ? stages[s].backward(key, grad) : stages[s].backward_input(key, grad);
      if (how == Backward::Split) stages[s].backward_weight(key);
    }
  }
  if (how != Backward::SplitLate) return;
  for (int slice = slices; slice-- > 0;) {
    for (nn::Stage& stage : stages) stage.backward_weight({micro_batch, slice});
  }
}

inline reference::Weights weights_of(std::vector<nn::Stage>& stages) {
  reference::Weights weights;
  for (nn::Stage& stage : stages) {
    for (const nn::Parameter& parameter : stage.parameters()) {
      if (!parameter.tied) weights[parameter.name] = parameter.weight.to(at::kDouble);
    }
  }
  return weights;
}

inline reference::Weights gradients_of(std::vector<nn::Stage>& stages) {
  reference::Weights gradients;
  for (nn::Stage& stage : stages) {
    for (const nn::Parameter& parameter : stage.parameters()) {
      if (parameter.tied) {
        at::Tensor& owner = gradients.at("model.embed_tokens.weight");
        owner = owner + parameter.gradient;
      } else {
        gradients[parameter.name] = parameter.gradient.clone();
      }
    }
  }
  return gradients;
}

// One step; the stages must be fresh.
inline StepResult run_step(std::vector<nn::Stage>& stages, const std::vector<reference::MicroBatch>& batches,
                           const Cut& cut, double loss_scale) {
  StepResult run;
  for (int micro_batch = 0; micro_batch < static_cast<int>(batches.size()); ++micro_batch) {
    const auto& batch = batches[micro_batch];
    run.loss += forward_all(stages, batch, micro_batch, cut.slices, loss_scale);
    backward_all(stages, micro_batch, static_cast<int>(cut.slices.size()), cut.backward);
  }
  run.gradients = gradients_of(stages);
  return run;
}

}  // namespace penstock::testing
