// SPDX-License-Identifier: Apache-2.0
#include "nn/stage.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "backend/memory.h"
#include "base/error.h"
#include "nn/decoder_layer.h"
#include "nn/embedding_shards.h"
#include "nn/layer_binding.h"
#include "nn/output_layer.h"
#include "nn/stage_parameters.h"
#include "nn/vocabulary_visit.h"

namespace penstock::nn {

// Record of one (micro-batch, slice).
struct SliceRecord {
  SlicePlace place;
  std::vector<LayerRecords> layers;
  std::vector<at::Tensor> tokens;  // first stage: for the embedding's gradient; views of the caller's batch
  at::Tensor grad_hidden;          // last stage: the kept gradient of the loss [n, h]
};
using SliceRecords = std::map<SliceKey, SliceRecord>;

// The pending weight products of one (micro-batch, slice).
struct SliceProducts {
  std::int64_t tokens = 0;
  std::vector<WeightRecord> layers;
};

namespace {

constexpr int kOutputChannel = 2;  // after those of TensorGroup::Collective

// The records of one layer for the slices before `key`, newest first, per shard.
std::vector<std::vector<LayerRecord*>> earlier_slices(SliceRecords& records, SliceKey key, std::size_t layer,
                                                      int shards) {
  std::vector<std::vector<LayerRecord*>> earlier(static_cast<std::size_t>(shards));
  for (int slice = key.slice - 1; slice >= 0; --slice) {
    const auto found = records.find({key.micro_batch, slice});
    PENSTOCK_CHECK(found != records.end(), "a slice needs the keys and values of all earlier slices");
    for (std::size_t shard = 0; shard < earlier.size(); ++shard)
      earlier[shard].push_back(&found->second.layers[layer][shard]);
  }
  return earlier;
}

// Evaluation keeps only the tensors that later slices read.
model::KeepSet kept_by_evaluation(const ForwardInput& input) {
  return input.last_slice ? model::KeepSet{} : model::KeepSet{}.with(model::SavedTensor::KeyValue);
}

at::Tensor as_rows(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

StageOptions completed(StageOptions options) {
  const std::int64_t experts = options.shape.experts;
  if (options.experts.own.count == 0) options.experts.own = {.count = experts, .held = experts};
  return options;
}

}  // namespace

struct Stage::Parts {
  StageOptions options;
  TensorGroup alone;
  TensorGroup& group;
  const ContextGroup& context;
  std::vector<Parameter> parameters;  // of all shards, one after the other
  std::vector<DecoderLayer> layers;
  EmbeddingShards embedding;   // first stage
  OutputLayer output;          // last stage, single shard
  OutputShards shared_output;  // last stage, several shards
  RouterBalance balance;       // for layers with experts
  SliceRecords records;
  SliceRecords evaluated;
  std::map<SliceKey, SliceProducts> weight_records;

  explicit Parts(const StageOptions& given);
  std::span<Parameter> parameters_of(int own_index);
  void bind(const model::Shape& shape);
  model::KeepSet kept_of(std::size_t layer) const;
  Rows run_layers(const ForwardInput& input, SliceRecords& store, bool training);
  OutputResult run_output(const ForwardInput& input, const Rows& hidden, bool training);
  SliceRecord take_record(SliceKey key);
  template <class OfLayer>
  at::Tensor run_backward(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners,
                          OfLayer&& of_layer);
};

kernels::RotaryTable rotary_table(const model::Shape& shape, std::int64_t positions,
                                  model::Precision precision) {
  kernels::RotaryTable table = kernels::rotary_table(shape, positions, compute_type(precision));
  backend::recount(table.cosine, model::Category::Weights);
  backend::recount(table.sine, model::Category::Weights);
  return table;
}

Stage::Parts::Parts(const StageOptions& given)
    : options(completed(given)),
      group(given.group ? *given.group : alone),
      context(given.context ? *given.context : ContextGroup::alone()) {
  PENSTOCK_CHECK(given.keep.empty() || given.keep.size() == static_cast<std::size_t>(given.layers.count),
                 "a policy for each layer");
  for (std::vector<Parameter>& shard : make_parameters(options, group))
    std::ranges::move(shard, std::back_inserter(parameters));
  bind(given.shape);
  if (given.shape.experts > 1)
    balance = {given.experts.losses, given.layers.count, given.shape.experts, given.shape.experts_per_token};
}

std::span<Parameter> Stage::Parts::parameters_of(int own_index) {
  const std::size_t count = parameters.size() / static_cast<std::size_t>(group.own());
  return std::span(parameters).subspan(count * static_cast<std::size_t>(own_index), count);
}

void Stage::Parts::bind(const model::Shape& shape) {
  embedding.group = &group;
  shared_output = {.own = {},
                   .ranks = group.shards() > 1 ? &group.communicator() : nullptr,
                   .group = &group,
                   .norm_epsilon = shape.norm_epsilon,
                   .tile_tokens = options.loss_tile_tokens};
  layers.resize(static_cast<std::size_t>(options.layers.count));
  for (int i = 0; i < group.own(); ++i) {
    const std::span<Parameter> shard = parameters_of(i);
    if (options.first) embedding.own.push_back(&shard.front());
    if (options.last)
      shared_output.own.push_back(
          {&parameter_named(shard, kOutputName), &parameter_named(shard, kFinalNormName)});
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const auto number = options.layers.first + static_cast<std::int64_t>(layer);
      LayerShard& bound =
          layers[layer].shards.emplace_back(bind_layer(shard, options, group.shards(), number));
      bound.attention.rotary = &options.rotary;
      bound.attention.context = &context;
      layers[layer].group = &group;
      layers[layer].norm_epsilon = shape.norm_epsilon;
    }
  }
  if (options.last) {
    const OutputShards::Shard& whole = shared_output.own.front();
    output = {whole.norm, whole.matrix, shape.norm_epsilon, options.loss_tile_tokens};
  }
}

model::KeepSet Stage::Parts::kept_of(std::size_t layer) const {
  return options.keep.empty() ? keep_of(model::Policy::None) : options.keep[layer];
}

// Returns the last layer's output.
Rows Stage::Parts::run_layers(const ForwardInput& input, SliceRecords& store, bool training) {
  SliceRecord& record = store[input.key];
  PENSTOCK_CHECK(record.layers.empty(), "a slice goes forward once");
  record.place = input.place;
  record.layers.assign(layers.size(), LayerRecords(static_cast<std::size_t>(group.own())));
  if (options.first && training) record.tokens = input.tokens;
  Rows hidden = options.first ? embedding.embed(row_of(input.tokens))
                              : group.split(as_rows(input.hidden), input.place.rows());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerCall call{input.place, earlier_slices(store, input.key, layer, group.own()), input.partners};
    LayerRecords& records_of_layer = record.layers[layer];
    hidden = layer_forward(layers[layer], hidden, call, records_of_layer);
    for (LayerRecord& shard : records_of_layer) {
      if (training && layers[layer].has_experts()) balance.add(input.key.micro_batch, layer, shard.mixture);
      drop_unless(training ? kept_of(layer) : kept_by_evaluation(input), shard);
      recount(shard);
    }
  }
  return hidden;
}

// Returns the loss and, when training, the gradient of the stage's output.
OutputResult Stage::Parts::run_output(const ForwardInput& input, const Rows& hidden, bool training) {
  const at::Tensor targets = row_of(input.targets);
  if (group.shards() == 1) {
    if (training) return output_forward(output, hidden.front(), targets, input.loss_scale);
    return {.loss_sum = output_loss(output, hidden.front(), targets), .grad_hidden = {}};
  }
  const VisitInput given{hidden, targets, input.loss_scale, training};
  const VisitResult result = VocabularyVisit(shared_output, kOutputChannel, given).carry_out();
  return {result.loss_sum, training ? group.join(result.grad_hidden) : at::Tensor()};
}

SliceRecord Stage::Parts::take_record(SliceKey key) {
  const auto found = records.find(key);
  PENSTOCK_CHECK(found != records.end(), "backward follows forward, once");
  const auto next = std::next(found);
  PENSTOCK_CHECK(next == records.end() || next->first.micro_batch != key.micro_batch,
                 "the backwards of later slices come first: they add to this slice's keys and values");
  return std::move(records.extract(found).mapped());
}

// Runs the layers last to first: of_layer(layer, output gradient, call, records) returns the input gradient.
template <class OfLayer>
at::Tensor Stage::Parts::run_backward(SliceKey key, const at::Tensor& grad_output,
                                      AttentionPartners* partners, OfLayer&& of_layer) {
  SliceRecord record = take_record(key);
  const std::int64_t tokens = record.place.rows();
  Rows grad =
      group.split(options.last ? std::exchange(record.grad_hidden, {}) : as_rows(grad_output), tokens);
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    LayerCall call{record.place, earlier_slices(records, key, layer, group.own()), partners};
    if (layers[layer].has_experts()) call.route_losses = &balance.losses(key.micro_batch, layer);
    grad = of_layer(layer, std::move(grad), call, std::move(record.layers[layer]));
  }
  if (!options.first) return group.join(grad);
  embedding.add_gradient(grad, row_of(record.tokens));
  return {};
}

Stage::Stage(const StageOptions& options) : parts_(std::make_unique<Parts>(options)) {}
Stage::~Stage() = default;
Stage::Stage(Stage&&) noexcept = default;

std::vector<Parameter>& Stage::parameters() { return parts_->parameters; }

ForwardOutput Stage::forward(const ForwardInput& input) {
  const Rows hidden = parts_->run_layers(input, parts_->records, true);
  if (!parts_->options.last) return {.hidden = parts_->group.join(hidden)};
  auto [loss_sum, grad_hidden] = parts_->run_output(input, hidden, true);
  backend::recount(grad_hidden, model::Category::Logits);
  parts_->records[input.key].grad_hidden = grad_hidden;
  return {.loss_sum = loss_sum};
}

at::Tensor Stage::backward_input(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners) {
  SliceProducts pending{.layers = std::vector<WeightRecord>(parts_->layers.size())};
  const auto of_layer = [&](std::size_t layer, Rows grad, const LayerCall& call, LayerRecords records) {
    WeightRecord& record = pending.layers[layer];
    grad = layer_backward_input(parts_->layers[layer], std::move(grad), call, std::move(records), record);
    record.end_gathered();
    recount(record);
    pending.tokens = call.place.rows();
    return grad;
  };
  at::Tensor grad = parts_->run_backward(key, grad_output, partners, of_layer);
  const bool fresh = parts_->weight_records.emplace(key, std::move(pending)).second;
  PENSTOCK_CHECK(fresh, "the weight gradients of an earlier use of this key are still to be formed");
  return grad;
}

void Stage::backward_weight(SliceKey key) {
  const auto found = parts_->weight_records.find(key);
  PENSTOCK_CHECK(found != parts_->weight_records.end(), "backward_weight follows backward_input, once");
  SliceProducts pending = std::move(parts_->weight_records.extract(found).mapped());
  for (std::size_t layer = pending.layers.size(); layer-- > 0;)
    layer_backward_weight(parts_->layers[layer], pending.tokens, std::move(pending.layers[layer]));
}

at::Tensor Stage::backward(SliceKey key, const at::Tensor& grad_output, AttentionPartners* partners) {
  return parts_->run_backward(key, grad_output, partners,
                              [&](std::size_t layer, Rows grad, const LayerCall& call, LayerRecords records) {
                                return layer_backward(parts_->layers[layer], std::move(grad), call,
                                                      std::move(records));
                              });
}

ForwardOutput Stage::evaluate(const ForwardInput& input) {
  const Rows hidden = parts_->run_layers(input, parts_->evaluated, false);
  if (!parts_->options.last) return {.hidden = parts_->group.join(hidden)};
  return {.loss_sum = parts_->run_output(input, hidden, false).loss_sum};
}

at::Tensor Stage::evaluate_logits(const ForwardInput& input) {
  PENSTOCK_CHECK(parts_->options.last && parts_->group.shards() == 1,
                 "a rank alone with the last stage has the output layer");
  const Rows hidden = parts_->run_layers(input, parts_->evaluated, false);
  const at::Tensor logits = output_logits(parts_->output, hidden.front());
  return logits.view({input.place.sequences, input.place.tokens, logits.size(1)});
}

void Stage::forget(int micro_batch) {
  std::erase_if(parts_->evaluated, [&](const auto& entry) { return entry.first.micro_batch == micro_batch; });
}

RouterFacts Stage::take_router_facts() { return parts_->balance.take(); }

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
  for (const LayerRecords& layer : found->second.layers) {
    for (const LayerRecord& shard : layer) append_leavable(shard, !sliced, storages);
  }
  return storages;
}

Stage::SavedBytes Stage::saved_bytes() const {
  StorageBytes activations, weight_records, kv_gradients, logits;
  for (const SliceRecords* store : {&parts_->records, &parts_->evaluated}) {
    for (const auto& [key, record] : *store) {
      logits.add(record.grad_hidden);
      for (const LayerRecords& layer : record.layers) {
        for (const LayerRecord& shard : layer) {
          for_saved(shard, [&](model::SavedTensor, SavedKind, const at::Tensor& tensor) {
            activations.add(tensor);
          });
          kv_gradients.add(shard.key_gradient);
          kv_gradients.add(shard.value_gradient);
        }
      }
    }
  }
  for (const auto& [key, products] : parts_->weight_records) {
    for (const WeightRecord& layer : products.layers)
      for_tensors(layer, [&](const at::Tensor& tensor) { weight_records.add(tensor); });
  }
  return {activations.total(), weight_records.total(), kv_gradients.total(), logits.total()};
}

}  // namespace penstock::nn
