// SPDX-License-Identifier: Apache-2.0
#include "profile/attention.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include "backend/device.h"
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

// A slice, which later slices attend to.
class Slice {
 public:
  Slice(const Sizes& sizes, std::int64_t tokens, at::ScalarType type) : type_(type) {
    const auto made = [&] {
      return at::randn({1, sizes.attention_heads, tokens, sizes.head_size}, backend::on_device(at::kFloat))
          .to(type);
    };
    // As the attention block has them: values, outputs and their gradients token by token.
    const auto by_token = [](const at::Tensor& x) { return x.transpose(1, 2).contiguous().transpose(1, 2); };
    query_ = made();
    key_ = made();
    value_ = by_token(made());
    grad_output_ = by_token(made());
    merged_ = nn::kernels::attend(query_, key_, value_, Mask::Causal);
    merged_.output = by_token(merged_.output.to(type));
    total_ = {merged_.output.to(nn::kernels::accumulator_type(type)), merged_.log_sum_exp.clone()};
    grad_query_ = at::zeros_like(query_, query_.options().dtype(nn::kernels::accumulator_type(type)));
    grad_key_ = at::zeros_like(grad_query_);
    grad_value_ = at::zeros_like(grad_query_);
  }

  // In memory of its own.
  Slice copy() const {
    Slice other = *this;
    for (at::Tensor* tensor :
         {&other.query_, &other.key_, &other.value_, &other.grad_output_, &other.grad_query_,
          &other.grad_key_, &other.grad_value_, &other.merged_.output, &other.merged_.log_sum_exp,
          &other.total_.output, &other.total_.log_sum_exp})
      *tensor = tensor->clone();
    return other;
  }

  void own() {
    const AttentionPart part = nn::kernels::attend(query_, key_, value_, Mask::Causal);
    part.output.transpose(1, 2).to(type_).contiguous();
  }
  void earlier(const Slice& before) {
    nn::kernels::merge(total_, nn::kernels::attend(query_, before.key_, before.value_, Mask::None));
  }
  void own_backward() { backward(*this, Mask::Causal); }
  void earlier_backward(Slice& before) { nn::kernels::accumulate(grad_query_, backward(before, Mask::None)); }

 private:
  at::Tensor backward(Slice& keys, Mask mask) {
    const auto part =
        nn::kernels::attend_backward(grad_output_, query_, keys.key_, keys.value_, merged_, mask);
    nn::kernels::accumulate(keys.grad_key_, part.key);
    nn::kernels::accumulate(keys.grad_value_, part.value);
    return part.query;
  }

  at::ScalarType type_;
  at::Tensor query_, key_, value_, grad_output_, grad_query_, grad_key_, grad_value_;
  AttentionPart merged_, total_;
};

}  // namespace

AttentionRates measure_attention(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  AttentionRates rates;
  for (const double tokens : sizes.attention_tokens) {
    const at::ScalarType type = nn::compute_type(precision);
    const auto count = static_cast<std::int64_t>(tokens);
    // Queries, keys, values and their gradients.
    const std::int64_t width = sizes.attention_heads * sizes.head_size;
    const std::int64_t bytes = 8 * count * width * at::elementSize(type);
    Ring<Slice> slices(cold_sets(bytes), [drawn = Slice(sizes, count, type)] { return drawn.copy(); });
    const double whole = 4 * tokens * tokens * static_cast<double>(width);
    Slice& current = slices.next();
    rates.own.push_back(whole / 2 / recorder.seconds([&] { slices.next().own(); }));
    rates.own_backward.push_back(2.5 * whole / 2 / recorder.seconds([&] { slices.next().own_backward(); }));
    rates.earlier.push_back(whole / recorder.seconds([&] { current.earlier(slices.next()); }));
    rates.earlier_backward.push_back(2.5 * whole /
                                     recorder.seconds([&] { current.earlier_backward(slices.next()); }));
  }
  return rates;
}

}  // namespace penstock::profile
