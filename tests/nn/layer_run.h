// SPDX-License-Identifier: Apache-2.0
// One decoder layer on one rank, in any number of logical shards, and a run of slices through it.
#pragma once

#include <ATen/ops/cat.h>

#include <functional>
#include <memory>

#include "comm/single.h"
#include "nn/decoder_layer.h"
#include "nn/kernels/rope.h"
#include "nn/layer_binding.h"
#include "nn/reference_model.h"
#include "nn/stage_parameters.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {

// A layer with random weights (norms too, unlike fresh ones). Stays where it is: shards point to its members.
struct TestLayer {
  model::Shape shape;
  at::ScalarType type;
  std::unique_ptr<comm::Communicator> rank = comm::make_single();
  nn::TensorGroup group;
  reference::Weights whole;                            // the weights, before they are cut
  std::vector<std::vector<nn::Parameter>> parameters;  // of each shard
  nn::kernels::RotaryTable rotary;
  nn::DecoderLayer layer;

  explicit TestLayer(const model::Shape& given, model::Precision precision = model::Precision::F64,
                     int shards = 1)
      : shape(given),
        type(nn::compute_type(precision)),
        group(*rank, shards, true),
        rotary(nn::kernels::rotary_table(given, 256, type)) {
    parameters = nn::make_parameters(
        {.shape = shape, .layers = {0, 1}, .first = false, .last = false, .precision = precision}, group);
    for (std::vector<nn::Parameter>& shard : parameters) {
      fill(shard);
      layer.shards.push_back(bound(shard));
    }
    layer.group = &group;
  }
  TestLayer(const TestLayer&) = delete;

  void zero_gradients() {
    for (auto& shard : parameters) {
      for (nn::Parameter& parameter : shard) parameter.gradient.zero_();
    }
  }

  // Of the whole matrices, copies added.
  reference::Weights gradients() const {
    reference::Weights gradients;
    for (const auto& shard : parameters) {
      for (const nn::Parameter& parameter : shard) {
        at::Tensor& gradient = gradients[parameter.name];
        if (!gradient.defined()) gradient = at::zeros(parameter.sizes, parameter.gradient.options());
        own_part(gradient, parameter).add_(parameter.gradient);
      }
    }
    return gradients;
  }

 private:
  static at::Tensor own_part(const at::Tensor& tensor, const nn::Parameter& parameter) {
    const mesh::Shard& shard = parameter.shard;
    return tensor.narrow(shard.dimension, shard.begin, shard.count);
  }

  void fill(std::vector<nn::Parameter>& shard) {
    for (std::size_t i = 0; i < shard.size(); ++i) {
      at::Tensor& values = whole[shard[i].name];
      if (!values.defined()) values = random_tensor(shard[i].sizes, type, 100 + i).mul(0.5);
      shard[i].weight.copy_(own_part(values, shard[i]));
    }
  }

  nn::LayerShard bound(std::vector<nn::Parameter>& shard) {
    nn::LayerShard layer = nn::bind_layer(shard, {.shape = shape}, group.shards(), 0);
    layer.attention.rotary = &rotary;
    return layer;
  }
};

// What one run of a layer's slices gives.
struct LayerResult {
  at::Tensor output, grad_input;     // [b, s, h]
  std::vector<at::Tensor> operands;  // of the weight gradients
};

using SlicesOfRecords = std::vector<nn::LayerRecords>;

// All slices forward, then all backward, last first; `between` may change the records in between.
inline LayerResult run_layer(TestLayer& test, const at::Tensor& x, const at::Tensor& grad,
                             const std::vector<std::int64_t>& slices,
                             const std::function<void(SlicesOfRecords&)>& between = {}) {
  SlicesOfRecords records(slices.size(), nn::LayerRecords(test.layer.shards.size()));
  std::vector<nn::SlicePlace> places;
  std::vector<at::Tensor> outputs, grads(slices.size());
  const auto rows = [&](const at::Tensor& all, const nn::SlicePlace& place) {
    const at::Tensor slice = all.narrow(1, place.first_position, place.tokens);
    return test.group.split(slice.reshape({-1, test.shape.hidden}).contiguous(), place.rows());
  };
  const auto whole = [&](const nn::Rows& blocks, const nn::SlicePlace& place) {
    return test.group.join(blocks).view({place.sequences, place.tokens, -1});
  };
  const auto call = [&](std::size_t slice) {
    nn::LayerCall call{.place = places[slice], .earlier = {}};
    call.earlier.resize(test.layer.shards.size());
    for (std::size_t earlier = slice; earlier-- > 0;) {
      for (std::size_t shard = 0; shard < call.earlier.size(); ++shard)
        call.earlier[shard].push_back(&records[earlier][shard]);
    }
    return call;
  };
  std::int64_t position = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    places.push_back({x.size(0), slices[i], position});
    outputs.push_back(
        whole(nn::layer_forward(test.layer, rows(x, places[i]), call(i), records[i]), places[i]));
    position += slices[i];
  }
  if (between) between(records);
  LayerResult result;
  for (std::size_t i = slices.size(); i-- > 0;) {
    nn::WeightRecord pending;
    grads[i] = whole(
        nn::layer_backward_input(test.layer, rows(grad, places[i]), call(i), std::move(records[i]), pending),
        places[i]);
    for_tensors(pending, [&](const at::Tensor& tensor) { result.operands.push_back(tensor); });
    nn::layer_backward_weight(test.layer, places[i].rows(), std::move(pending));
  }
  result.output = at::cat(outputs, 1);
  result.grad_input = at::cat(grads, 1);
  return result;
}

}  // namespace penstock::testing
