// SPDX-License-Identifier: Apache-2.0
#include "profile/attention.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/merge.h"
#include "nn/stage_parameters.h"

namespace penstock::profile {
namespace {

using nn::kernels::AttentionPart;
using nn::kernels::Mask;

class Slice {
 public:
  Slice(std::int64_t tokens, at::ScalarType type) : type_(type) {
    const auto made = [&] { return at::randn({1, kAttentionHeads, tokens, kHeadSize}, at::kFloat).to(type); };
    query_ = made();
    key_ = made();
    value_ = made();
    grad_output_ = made();
    merged_ = nn::kernels::attend(query_, key_, value_, Mask::Causal);
    merged_.output = merged_.output.to(type);
    total_ = {merged_.output.to(nn::kernels::accumulator_type(type)), merged_.log_sum_exp.clone()};
    grad_query_ = at::zeros_like(query_, query_.options().dtype(nn::kernels::accumulator_type(type)));
    grad_key_ = at::zeros_like(grad_query_);
    grad_value_ = at::zeros_like(grad_query_);
  }

  void own() {
    const AttentionPart part = nn::kernels::attend(query_, key_, value_, Mask::Causal);
    part.output.transpose(1, 2).to(type_).contiguous();
  }
  void earlier() { nn::kernels::merge(total_, nn::kernels::attend(query_, key_, value_, Mask::None)); }
  void own_backward() { backward(Mask::Causal); }
  void earlier_backward() { nn::kernels::accumulate(grad_query_, backward(Mask::None)); }

 private:
  at::Tensor backward(Mask mask) {
    const auto part = nn::kernels::attend_backward(grad_output_, query_, key_, value_, merged_, mask);
    nn::kernels::accumulate(grad_key_, part.key);
    nn::kernels::accumulate(grad_value_, part.value);
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
    Slice slice(static_cast<std::int64_t>(tokens), nn::compute_type(precision));
    const double whole = 4 * tokens * tokens * static_cast<double>(kAttentionHeads * kHeadSize);
    rates.own.push_back(whole / 2 / recorder.seconds([&] { slice.own(); }));
    rates.own_backward.push_back(2.5 * whole / 2 / recorder.seconds([&] { slice.own_backward(); }));
    rates.earlier.push_back(whole / recorder.seconds([&] { slice.earlier(); }));
    rates.earlier_backward.push_back(2.5 * whole / recorder.seconds([&] { slice.earlier_backward(); }));
  }
  return rates;
}

}  // namespace penstock::profile
