// SPDX-License-Identifier: Apache-2.0
#include "nn/stage.h"

#include <utility>

#include "base/error.h"
#include "nn/allocator.h"
#include "nn/decoder_layer.h"
#include "nn/kernels/embedding.h"
#include "nn/output_layer.h"
#include "nn/stage_parameters.h"

namespace penstock::nn {
namespace {

// Record of one (micro-batch, slice).
struct SliceRecord {
  SlicePlace place;
  std::vector<LayerRecord> layers;
  at::Tensor tokens;       // first stage: for the embedding's gradient; a view of the caller's batch
  at::Tensor grad_hidden;  // last stage: the kept gradient of the loss [N, h]
};
using SliceRecords = std::map<SliceKey, SliceRecord>;

// The records of one layer for the slices before `key`, newest first.
std::vector<LayerRecord*> earlier_slices(SliceRecords& records, SliceKey key, std::size_t layer) {
  std::vector<LayerRecord*> earlier;
  for (int slice = key.slice - 1; slice >= 0; --slice) {
    const auto found = records.find({key.micro_batch, slice});
    PENSTOCK_CHECK(found != records.end(), "a slice needs the keys and values of all earlier slices");
    earlier.push_back(&found->second.layers[layer]);
  }
  return earlier;
}

SlicePlace place_of(const ForwardInput& input) {
  const at::Tensor& given = input.tokens.defined() ? input.tokens : input.hidden;
  return {given.size(0), given.size(1), input.first_position};
}

// Kept of a slice in evaluation: the tensors that later slices read.
model::KeepSet kept_by_evaluation(const ForwardInput& input) {
  return input.last_slice ? model::KeepSet{} : model::KeepSet{}.with(model::SavedTensor::KeyValue);
}

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

at::Tensor as_slices(const at::Tensor& rows, const SlicePlace& place) {
  return rows.view({place.sequences, place.tokens, rows.size(1)});
}

DecoderLayer bind_layer(std::vector<Parameter>& parameters, const model::Shape& shape, std::int64_t layer,
                        const kernels::RotaryTable* rotary) {
  const auto named = [&](const char* part) {
    return &parameter_named(parameters, "model.layers." + std::to_string(layer) + "." + part + ".weight");
  };
  DecoderLayer bound;
  bound.attention = {shape.heads,
                     shape.kv_heads,
                     named("self_attn.q_proj"),
                     named("self_attn.k_proj"),
                     named("self_attn.v_proj"),
                     named("self_attn.o_proj"),
                     rotary};
  bound.feed_forward = {named("mlp.gate_proj"), named("mlp.up_proj"), named("mlp.down_proj")};
  bound.input_norm = named("input_layernorm");
  bound.post_attention_norm = named("post_attention_layernorm");
  bound.norm_epsilon = shape.norm_epsilon;
  return bound;
}

}  // namespace

struct Stage::Parts {
  StageOptions options;
  std::vector<Parameter> parameters;
  kernels::RotaryTable rotary;
  std::vector<DecoderLayer> layers;
  Parameter* embedding = nullptr;  // first stage
  OutputLayer output;              // last stage
  SliceRecords records;
  SliceRecords evaluated;
  std::map<SliceKey, std::vector<WeightRecord>> weight_records;  // per layer

  explicit Parts(const StageOptions& given);
  model::KeepSet kept_of(std::size_t layer) const;
  at::Tensor run_layers(const ForwardInput& input, SliceRecords& store, bool training);
  SliceRecord take_record(SliceKey key);
  template <class Consume>
  at::Tensor run_backward(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners,
                          Consume&& consume);
};

Stage::Parts::Parts(const StageOptions& given)
    : options(given),
      parameters(make_parameters(given)),
      rotary(kernels::rotary_table(given.shape, given.max_positions, compute_type(given.precision))) {
  PENSTOCK_CHECK(given.keep.empty() || given.keep.size() == static_cast<std::size_t>(given.layers.count),
                 "a policy for each layer");
  recount(rotary.cosine, Category::Weights);
  recount(rotary.sine, Category::Weights);
  for (std::int64_t layer = 0; layer < given.layers.count; ++layer) {
    layers.push_back(bind_layer(parameters, given.shape, given.layers.first + layer, &rotary));
  }
  if (given.first) embedding = &parameters.front();
  if (given.last) {
    output = {&parameter_named(parameters, "model.norm.weight"),
              &parameter_named(parameters, "lm_head.weight"), given.shape.norm_epsilon,
              given.loss_tile_tokens};
  }
}

model::KeepSet Stage::Parts::kept_of(std::size_t layer) const {
  return options.keep.empty() ? keep_of(model::Policy::None) : options.keep[layer];
}

// The last layer's output [N, h].
at::Tensor Stage::Parts::run_layers(const ForwardInput& input, SliceRecords& store, bool training) {
  SliceRecord& record = store[input.key];
  PENSTOCK_CHECK(record.layers.empty(), "a slice goes forward once");
  record.place = place_of(input);
  record.layers.resize(layers.size());
  if (options.first && training) record.tokens = input.tokens;
  at::Tensor hidden = options.first ? kernels::embed(embedding->weight, input.tokens.reshape(-1).contiguous())
                                    : as_rows(input.hidden);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const auto earlier = earlier_slices(store, input.key, layer);
    hidden =
        layer_forward(layers[layer], hidden, record.place, earlier, record.layers[layer], input.partners);
    drop_unless(training ? kept_of(layer) : kept_by_evaluation(input), record.layers[layer]);
    recount(record.layers[layer]);
  }
  return hidden;
}

SliceRecord Stage::Parts::take_record(SliceKey key) {
  const auto found = records.find(key);
  PENSTOCK_CHECK(found != records.end(), "backward follows forward, once");
  const auto next = std::next(found);
  PENSTOCK_CHECK(next == records.end() || next->first.micro_batch != key.micro_batch,
                 "the backwards of later slices come first: they add to this slice's keys and values");
  return std::move(records.extract(found).mapped());
}

// Gives each layer's weight record to consume(layer, record), last layer first.
template <class Consume>
at::Tensor Stage::Parts::run_backward(SliceKey key, const at::Tensor& grad_output,
                                      AttentionPartners* partners, Consume&& consume) {
  SliceRecord record = take_record(key);
  at::Tensor grad = options.last ? std::exchange(record.grad_hidden, {}) : as_rows(grad_output);
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const auto earlier = earlier_slices(records, key, layer);
    WeightRecord pending;
    grad = layer_backward_input(layers[layer], grad, record.place, earlier, std::move(record.layers[layer]),
                                pending, partners);
    consume(layer, std::move(pending));
  }
  if (!options.first) return as_slices(grad, record.place);
  kernels::accumulate_embedding_gradient(embedding->gradient, grad, record.tokens.reshape(-1).contiguous());
  return {};
}

Stage::Stage(const StageOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Stage::~Stage() = default;
Stage::Stage(Stage&&) noexcept = default;

std::vector<Parameter>& Stage::parameters() { return parts_->parameters; }

ForwardOutput Stage::forward(const ForwardInput& input) {
  const at::Tensor hidden = parts_->run_layers(input, parts_->records, true);
  SliceRecord& record = parts_->records[input.key];
  if (!parts_->options.last) return {.hidden = as_slices(hidden, record.place)};
  auto [loss_sum, grad_hidden] =
      output_forward(parts_->output, hidden, input.targets.reshape(-1).contiguous(), input.loss_scale);
  recount(grad_hidden, Category::Logits);
  record.grad_hidden = grad_hidden;
  return {.loss_sum = loss_sum};
}

at::Tensor Stage::backward_input(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners) {
  std::vector<WeightRecord> pending(parts_->layers.size());
  at::Tensor grad =
      parts_->run_backward(key, grad_output, partners, [&](std::size_t layer, WeightRecord record) {
        recount(record);
        pending[layer] = std::move(record);
      });
  const bool fresh = parts_->weight_records.emplace(key, std::move(pending)).second;
  PENSTOCK_CHECK(fresh, "the weight gradients of an earlier use of this key are still to be formed");
  return grad;
}

void Stage::backward_weight(SliceKey key) {
  const auto found = parts_->weight_records.find(key);
  PENSTOCK_CHECK(found != parts_->weight_records.end(), "backward_weight follows backward_input, once");
  std::vector<WeightRecord> pending = std::move(parts_->weight_records.extract(found).mapped());
  for (std::size_t layer = pending.size(); layer-- > 0;) layer_backward_weight(std::move(pending[layer]));
}

at::Tensor Stage::backward(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners) {
  return parts_->run_backward(key, grad_output, partners, [](std::size_t, WeightRecord record) {
    layer_backward_weight(std::move(record));
  });
}

ForwardOutput Stage::evaluate(const ForwardInput& input) {
  const at::Tensor hidden = parts_->run_layers(input, parts_->evaluated, false);
  if (!parts_->options.last) return {.hidden = as_slices(hidden, place_of(input))};
  return {.loss_sum = output_loss(parts_->output, hidden, input.targets.reshape(-1).contiguous())};
}

at::Tensor Stage::evaluate_logits(const ForwardInput& input) {
  PENSTOCK_CHECK(parts_->options.last, "the last stage has the output layer");
  const at::Tensor hidden = parts_->run_layers(input, parts_->evaluated, false);
  return as_slices(output_logits(parts_->output, hidden), place_of(input));
}

void Stage::forget(int micro_batch) {
  std::erase_if(parts_->evaluated, [&](const auto& entry) { return entry.first.micro_batch == micro_batch; });
}

void Stage::zero_gradients() {
  for (Parameter& parameter : parts_->parameters) parameter.gradient.zero_();
}

void Stage::weights_from_masters() {
  for (Parameter& parameter : parts_->parameters) weight_from_master(parameter);
}

std::vector<c10::Storage> Stage::leavable(SliceKey key, bool sliced) const {
  const auto found = parts_->records.find(key);
  PENSTOCK_CHECK(found != parts_->records.end(), "a record leaves between forward and backward");
  std::vector<c10::Storage> storages;
  for (const LayerRecord& layer : found->second.layers) append_leavable(layer, !sliced, storages);
  return storages;
}

Stage::SavedBytes Stage::saved_bytes() const {
  StorageBytes activations, weight_records, kv_gradients, logits;
  for (const SliceRecords* store : {&parts_->records, &parts_->evaluated}) {
    for (const auto& [key, record] : *store) {
      logits.add(record.grad_hidden);
      for (const LayerRecord& layer : record.layers) {
        for (const at::Tensor& tensor : layer.tensors) activations.add(tensor);
        kv_gradients.add(layer.key_gradient);
        kv_gradients.add(layer.value_gradient);
      }
    }
  }
  for (const auto& [key, layers] : parts_->weight_records) {
    for (const WeightRecord& layer : layers) {
      for (const PendingProduct& product : layer) {
        weight_records.add(product.grad_output);
        weight_records.add(product.input);
      }
    }
  }
  return {activations.total(), weight_records.total(), kv_gradients.total(), logits.total()};
}

}  // namespace penstock::nn
