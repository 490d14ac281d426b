// SPDX-License-Identifier: Apache-2.0
#include "nn/decoder_layer.h"

#include <ATen/ops/add.h>

#include <utility>

#include "nn/kernels/matmul.h"
#include "nn/kernels/profile.h"
#include "nn/kernels/rms_norm.h"
#include "nn/weight_products.h"

namespace penstock::nn {

namespace {

void normalise(const Parameter& norm, double epsilon, const at::Tensor& input, at::Tensor& output,
               at::Tensor& scale) {
  if (output.defined()) return;
  auto normed = kernels::rms_norm(input, norm.weight, epsilon);
  output = std::move(normed.output);
  scale = std::move(normed.scale);
}

// The first residual sum and its norm. `branch` is undefined if the record has the sum.
void add_attention(const Parameter& norm, double epsilon, const at::Tensor& branch, LayerRecord& record) {
  at::Tensor& sum = record[Saved::Norm2Input];
  at::Tensor& output = record[Saved::Norm2Output];
  if (sum.defined()) return normalise(norm, epsilon, sum, output, record[Saved::Norm2Scale]);
  if (output.defined()) {
    sum = at::add(record[Saved::LayerInput], branch);
    return;
  }
  auto normed = kernels::rms_norm_of_sum(record[Saved::LayerInput], branch, norm.weight, epsilon, sum);
  output = std::move(normed.output);
  record[Saved::Norm2Scale] = std::move(normed.scale);
}

// One slice's pass through one layer.
class LayerPass {
 public:
  enum class Way : std::uint8_t { Forward, Backward };
  LayerPass(const DecoderLayer& layer, const LayerCall& call, LayerRecords& records, Way way)
      : layer_(layer),
        call_(call),
        group_(*layer.group),
        records_(records),
        tokens_(call.place.rows()),
        way_(way) {}

  // Computes the tensors that the records lack, from LayerInput to Gate and Up, or to the experts' input: all
  // of them in the forward, the dropped ones in the backward. The same operations on the same values give the
  // same bits.
  void complete();
  Rows output();
  // With `at_once`, computes the feed-forward's pending products before attention's backward.
  Rows backward_input(Rows grad_output, WeightRecord& pending, bool at_once);

 private:
  // Calls work(shard, record, index) for each shard.
  template <class Work>
  void for_shards(Work&& work);
  bool lacks(Saved name) const { return !records_.front()[name].defined(); }
  Rows rows_of(Saved name) const;
  Rows take_rows_of(Saved name);
  // Gathers rows at their first use. The backward keeps them for the weight products.
  GatheredRows& gathered(GatheredRows& rows, Saved name);
  void end_in_forward(GatheredRows& rows) {
    if (way_ == Way::Forward) rows.finish();
  }
  Rows scattered(const TensorGroup::Part& part);
  EarlierSlices earlier(int shard) const { return call_.earlier[static_cast<std::size_t>(shard)]; }

  void project();
  void attend_and_add();
  void expand();
  Rows feed_forward();
  Rows mixtures();
  Rows mixtures_backward(const Rows& grad_output, WeightRecord& pending);
  Rows feed_forward_backward(const Rows& grad_output, WeightRecord& pending);
  Rows attention_backward_input(const Rows& grad_output, WeightRecord& pending);

  const DecoderLayer& layer_;
  const LayerCall& call_;
  TensorGroup& group_;
  LayerRecords& records_;
  const std::int64_t tokens_;
  const Way way_;
  GatheredRows norm1_, norm2_;
};

template <class Work>
void LayerPass::for_shards(Work&& work) {
  for (int i = 0; i < group_.own(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    work(layer_.shards[index], records_[index], i);
  }
}

Rows LayerPass::rows_of(Saved name) const {
  Rows rows;
  for (const LayerRecord& record : records_) rows.push_back(record[name]);
  return rows;
}

Rows LayerPass::take_rows_of(Saved name) {
  Rows rows;
  for (LayerRecord& record : records_) rows.push_back(std::move(record[name]));
  return rows;
}

GatheredRows& LayerPass::gathered(GatheredRows& rows, Saved name) {
  if (!rows.defined()) rows = group_.gather(rows_of(name), tokens_);
  return rows;
}

Rows LayerPass::scattered(const TensorGroup::Part& part) {
  const at::Tensor& like = records_.front()[Saved::LayerInput];
  return group_.scatter(tokens_, like.size(1), like.scalar_type(), part);
}

void LayerPass::complete() {
  if (call_.partners && lacks(Saved::AttentionOutput))
    call_.partners->post_keys(earlier(0), AttentionPartners::Pass::Forward);
  for_shards([&](const LayerShard& shard, LayerRecord& record, int) {
    normalise(*shard.input_norm, layer_.norm_epsilon, record[Saved::LayerInput], record[Saved::Norm1Output],
              record[Saved::Norm1Scale]);
  });
  project();
  attend_and_add();
  expand();
}

void LayerPass::project() {
  const BlockScope scope(Block::Attention);
  const auto product = [&](const Parameter* weight) {
    return gathered(norm1_, Saved::Norm1Output).product(weight->weight);
  };
  for_shards([&](const LayerShard& shard, LayerRecord& record, int) {
    const AttentionBlock& block = shard.attention;
    if (!record[Saved::Query].defined()) set_query(block, call_.place, product(block.query), record);
    if (lacks(Saved::AttentionOutput)) post_queries(block, record, call_.partners);
    if (lacks_key(block, record)) set_key(block, call_.place, product(block.key), record);
    if (!record[Saved::Value].defined()) set_value(block, call_.place, product(block.value), record);
  });
  end_in_forward(norm1_);
}

void LayerPass::attend_and_add() {
  Rows branches(records_.size());
  {
    const BlockScope scope(Block::Attention);
    for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
      if (!record[Saved::AttentionOutput].defined())
        attend(shard.attention, call_.place, earlier(i), record, call_.partners);
    });
    if (lacks(Saved::Norm2Input)) {
      branches = scattered([&](int i, std::int64_t first, std::int64_t count) {
        const auto index = static_cast<std::size_t>(i);
        return kernels::product(records_[index][Saved::AttentionOutput].narrow(0, first, count),
                                layer_.shards[index].attention.output->weight);
      });
    }
  }
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    add_attention(*shard.post_attention_norm, layer_.norm_epsilon, branches[static_cast<std::size_t>(i)],
                  record);
  });
}

void LayerPass::expand() {
  if (layer_.has_experts() || !lacks(Saved::Gate)) return;
  const BlockScope scope(Block::FeedForward);
  GatheredRows& input = gathered(norm2_, Saved::Norm2Output);
  for_shards([&](const LayerShard& shard, LayerRecord& record, int) {
    record[Saved::Gate] = input.product(shard.feed_forward.gate->weight);
    record[Saved::Up] = input.product(shard.feed_forward.up->weight);
  });
  end_in_forward(norm2_);
}

Rows LayerPass::output() {
  Rows sums = [&] {
    const BlockScope scope(Block::FeedForward);
    return layer_.has_experts() ? mixtures() : feed_forward();
  }();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = at::add(records_[i][Saved::Norm2Input], sums[i]);
  return sums;
}

Rows LayerPass::feed_forward() {
  for_shards([](const LayerShard&, LayerRecord& record, int) { activate(record); });
  return scattered([&](int i, std::int64_t first, std::int64_t count) {
    const auto index = static_cast<std::size_t>(i);
    return kernels::product(records_[index][Saved::Product].narrow(0, first, count),
                            layer_.shards[index].feed_forward.down->weight);
  });
}

Rows LayerPass::mixtures() {
  Rows sums;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int) {
    sums.push_back(mixture_forward(shard.mixture, record[Saved::Norm2Output], record.mixture));
  });
  return sums;
}

Rows LayerPass::backward_input(Rows grad_output, WeightRecord& pending, bool at_once) {
  complete();
  if (call_.partners) call_.partners->post_keys(earlier(0), AttentionPartners::Pass::Backward);
  Rows grad_norm2 = layer_.has_experts() ? mixtures_backward(grad_output, pending)
                                         : feed_forward_backward(grad_output, pending);
  if (at_once) form_feed_forward_products(layer_, tokens_, pending);
  Rows grad_middle;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    const auto index = static_cast<std::size_t>(i);
    Parameter& norm = *shard.post_attention_norm;
    grad_middle.push_back(kernels::rms_norm_backward(grad_norm2[index], record[Saved::Norm2Input],
                                                     norm.weight, record[Saved::Norm2Scale],
                                                     grad_output[index], norm.gradient));
  });
  grad_output.clear();
  grad_norm2.clear();
  const Rows grad_norm1 = attention_backward_input(grad_middle, pending);
  Rows grad_input;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    const auto index = static_cast<std::size_t>(i);
    Parameter& norm = *shard.input_norm;
    grad_input.push_back(kernels::rms_norm_backward(grad_norm1[index], record[Saved::LayerInput], norm.weight,
                                                    record[Saved::Norm1Scale], grad_middle[index],
                                                    norm.gradient));
  });
  return grad_input;
}

// Returns the gradient of Norm2Output.
Rows LayerPass::feed_forward_backward(const Rows& grad_output, WeightRecord& pending) {
  const BlockScope scope(Block::FeedForward);
  GatheredRows gradient = group_.gather(grad_output, tokens_);
  std::vector<GateGradients> grads;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int) {
    grads.push_back(activate_backward(gradient.product_backward(shard.feed_forward.down->weight), record));
  });
  Rows sums = scattered([&](int i, std::int64_t first, std::int64_t count) {
    const auto index = static_cast<std::size_t>(i);
    const FeedForward& block = layer_.shards[index].feed_forward;
    at::Tensor sum = kernels::product_backward(grads[index].gate.narrow(0, first, count), block.gate->weight);
    kernels::add_product_backward(sum, grads[index].up.narrow(0, first, count), block.up->weight);
    return sum;
  });
  pending.keep(SharedRows::Gradient, grad_output, std::move(gradient));
  pending.keep(SharedRows::Norm2Output, take_rows_of(Saved::Norm2Output), std::move(norm2_));
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    const FeedForward& block = shard.feed_forward;
    GateGradients& grad = grads[static_cast<std::size_t>(i)];
    pending.add(SharedRows::Gradient, block.down, std::move(record[Saved::Product]));
    pending.add(SharedRows::Norm2Output, block.gate, std::move(grad.gate));
    pending.add(SharedRows::Norm2Output, block.up, std::move(grad.up));
  });
  return sums;
}

// Returns the gradient of Norm2Output.
Rows LayerPass::mixtures_backward(const Rows& grad_output, WeightRecord& pending) {
  const BlockScope scope(Block::FeedForward);
  const RouteLosses none;
  const RouteLosses& losses = call_.route_losses ? *call_.route_losses : none;
  Rows grads;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    grads.push_back(mixture_backward_input(shard.mixture, std::move(record[Saved::Norm2Output]),
                                           grad_output[static_cast<std::size_t>(i)], losses,
                                           std::move(record.mixture), pending.mixtures.emplace_back()));
  });
  return grads;
}

// Returns the gradient of Norm1Output.
Rows LayerPass::attention_backward_input(const Rows& grad_output, WeightRecord& pending) {
  const BlockScope scope(Block::Attention);
  GatheredRows gradient = group_.gather(grad_output, tokens_);
  std::vector<AttentionGradients> grads;
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    grads.push_back(attention_backward(shard.attention, call_.place,
                                       gradient.product_backward(shard.attention.output->weight), earlier(i),
                                       record, call_.partners));
  });
  Rows sums = scattered([&](int i, std::int64_t first, std::int64_t count) {
    const AttentionBlock& block = layer_.shards[static_cast<std::size_t>(i)].attention;
    const AttentionGradients& grad = grads[static_cast<std::size_t>(i)];
    at::Tensor sum = kernels::product_backward(grad.query.narrow(0, first, count), block.query->weight);
    kernels::add_product_backward(sum, grad.key.narrow(0, first, count), block.key->weight);
    kernels::add_product_backward(sum, grad.value.narrow(0, first, count), block.value->weight);
    return sum;
  });
  pending.keep(SharedRows::MiddleGradient, grad_output, std::move(gradient));
  pending.keep(SharedRows::Norm1Output, rows_of(Saved::Norm1Output), std::move(norm1_));
  for_shards([&](const LayerShard& shard, LayerRecord& record, int i) {
    const AttentionBlock& block = shard.attention;
    AttentionGradients& grad = grads[static_cast<std::size_t>(i)];
    pending.add(SharedRows::MiddleGradient, block.output, record[Saved::AttentionOutput]);
    pending.add(SharedRows::Norm1Output, block.query, std::move(grad.query));
    pending.add(SharedRows::Norm1Output, block.key, std::move(grad.key));
    pending.add(SharedRows::Norm1Output, block.value, std::move(grad.value));
  });
  return sums;
}

}  // namespace

Rows layer_forward(const DecoderLayer& layer, const Rows& input, const LayerCall& call,
                   LayerRecords& records) {
  for (std::size_t i = 0; i < records.size(); ++i) records[i][Saved::LayerInput] = input[i];
  LayerPass pass(layer, call, records, LayerPass::Way::Forward);
  pass.complete();
  return pass.output();
}

Rows layer_backward(const DecoderLayer& layer, Rows grad_output, const LayerCall& call,
                    LayerRecords records) {
  WeightRecord pending;
  Rows grad_input = LayerPass(layer, call, records, LayerPass::Way::Backward)
                        .backward_input(std::move(grad_output), pending, true);
  records.clear();
  form_attention_products(layer, call.place.rows(), pending);
  return grad_input;
}

Rows layer_backward_input(const DecoderLayer& layer, Rows grad_output, const LayerCall& call,
                          LayerRecords records, WeightRecord& pending) {
  return LayerPass(layer, call, records, LayerPass::Way::Backward)
      .backward_input(std::move(grad_output), pending, false);
}

void layer_backward_weight(const DecoderLayer& layer, std::int64_t tokens, WeightRecord pending) {
  form_feed_forward_products(layer, tokens, pending);
  form_attention_products(layer, tokens, pending);
}

}  // namespace penstock::nn
