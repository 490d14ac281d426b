// SPDX-License-Identifier: Apache-2.0
#include "profile/attention.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "backend/device.h"
#include "base/whole.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/merge.h"
#include "nn/stage_parameters.h"
#include "profile/ring.h"

namespace penstock::profile {
namespace {

using nn::kernels::AttentionPart;
using nn::kernels::Mask;

at::Tensor random_heads(const Sizes& sizes, std::int64_t tokens, at::ScalarType type) {
  return at::randn({1, sizes.attention_heads, tokens, sizes.head_size}, backend::on_device(at::kFloat))
      .to(type);
}

// Token-major, as the attention block has values, outputs and their gradients.
at::Tensor token_by_token(const at::Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); }

at::Tensor sum_of(const at::Tensor& x) {
  return at::zeros_like(x, x.options().dtype(nn::kernels::accumulator_type(x.scalar_type())));
}

// Keys and values of one slice, or of several that one call takes, concatenated.
struct Keys {
  at::Tensor key, value, grad_key, grad_value;

  Keys(const Sizes& sizes, std::int64_t tokens, at::ScalarType type)
      : key(random_heads(sizes, tokens, type)),
        value(token_by_token(random_heads(sizes, tokens, type))),
        grad_key(sum_of(key)),
        grad_value(sum_of(key)) {}

  // Deep copy.
  Keys copy() const {
    Keys other = *this;
    for (at::Tensor* tensor : {&other.key, &other.value, &other.grad_key, &other.grad_value})
      *tensor = tensor->clone();
    return other;
  }
};

// A slice, which later slices attend to.
class Slice {
 public:
  Slice(const Sizes& sizes, std::int64_t tokens, at::ScalarType type)
      : type_(type), query_(random_heads(sizes, tokens, type)), keys_(sizes, tokens, type) {
    grad_output_ = token_by_token(random_heads(sizes, tokens, type));
    merged_ = nn::kernels::attend(query_, keys_.key, keys_.value, Mask::Causal);
    merged_.output = token_by_token(merged_.output.to(type));
    total_ = {merged_.output.to(nn::kernels::accumulator_type(type)), merged_.log_sum_exp.clone()};
    grad_query_ = sum_of(query_);
  }

  // Deep copy.
  Slice copy() const {
    Slice other = *this;
    other.keys_ = keys_.copy();
    for (at::Tensor* tensor : {&other.query_, &other.grad_output_, &other.grad_query_, &other.merged_.output,
                               &other.merged_.log_sum_exp, &other.total_.output, &other.total_.log_sum_exp})
      *tensor = tensor->clone();
    return other;
  }

  Keys& keys() { return keys_; }

  void own() {
    const AttentionPart part = nn::kernels::attend(query_, keys_.key, keys_.value, Mask::Causal);
    part.output.transpose(1, 2).to(type_).contiguous();
  }
  void earlier(const Keys& before) {
    nn::kernels::merge(total_, nn::kernels::attend(query_, before.key, before.value, Mask::None));
  }
  void own_backward() { backward(keys_, Mask::Causal); }
  void earlier_backward(Keys& before) { nn::kernels::accumulate(grad_query_, backward(before, Mask::None)); }

 private:
  at::Tensor backward(Keys& keys, Mask mask) {
    const auto part = nn::kernels::attend_backward(grad_output_, query_, keys.key, keys.value, merged_, mask);
    nn::kernels::accumulate(keys.grad_key, part.key);
    nn::kernels::accumulate(keys.grad_value, part.value);
    return part.query;
  }

  at::ScalarType type_;
  at::Tensor query_, grad_output_, grad_query_;
  Keys keys_;
  AttentionPart merged_, total_;
};

// Adds the FLOP/s of a slice's calls over earlier keys, which take turns.
template <class NextKeys>
void measure_earlier(AttentionRates& rates, Recorder& recorder, Slice& slice, double flops, NextKeys&& next) {
  rates.earlier.push_back(flops / recorder.seconds([&] { slice.earlier(next()); }));
  rates.earlier_backward.push_back(2.5 * flops / recorder.seconds([&] { slice.earlier_backward(next()); }));
}

}  // namespace

AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  AttentionRates rates;
  for (const double tokens : sizes.attention_tokens) {
    const at::ScalarType type = nn::compute_type(precision);
    const auto count = static_cast<std::int64_t>(tokens);
    // Queries, keys, values and their gradients.
    const std::int64_t width = sizes.attention_heads * sizes.head_size;
    const std::int64_t bytes = 8 * count * width * at::elementSize(type);
    Ring<Slice> slices(cold_sets(recorder.effort(), bytes),
                       [drawn = Slice(sizes, count, type)] { return drawn.copy(); });
    const double whole = 4 * tokens * tokens * static_cast<double>(width);
    Slice& current = slices.next();
    rates.own.push_back(whole / 2 / recorder.seconds([&] { slices.next().own(); }));
    rates.own_backward.push_back(2.5 * whole / 2 / recorder.seconds([&] { slices.next().own_backward(); }));
    // As many slices' keys as one call of a run takes.
    const std::int64_t keys = round_up(std::max(count, nn::kernels::keys_at_once(type, count)), count);
    if (keys == count) {
      measure_earlier(rates, recorder, current, whole, [&]() -> Keys& { return slices.next().keys(); });
      continue;
    }
    Ring<Keys> joined(cold_sets(recorder.effort(), bytes / count * keys / 2),
                      [drawn = Keys(sizes, keys, type)] { return drawn.copy(); });
    measure_earlier(rates, recorder, current, whole / tokens * static_cast<double>(keys),
                    [&]() -> Keys& { return joined.next(); });
  }
  return rates;
}

}  // namespace penstock::profile
