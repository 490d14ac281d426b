// SPDX-License-Identifier: Apache-2.0
#include "profile/memory_work.h"

#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cstring>
#include <vector>

#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/swiglu.h"
#include "nn/stage_parameters.h"
#include "profile/ring.h"

namespace penstock::profile {
namespace {

namespace kernels = nn::kernels;

model::Shape measured_shape() {
  model::Shape shape;
  shape.hidden = kElementwiseHidden;
  shape.ffn = kElementwiseFfn;
  shape.heads = shape.kv_heads = kElementwiseHeads;
  return shape;
}

// A layer without its products and attention.
class Layer {
 public:
  Layer(std::int64_t tokens, at::ScalarType type)
      : tokens_(tokens), type_(type), rotary_(kernels::rotary_table(measured_shape(), tokens, type)) {
    const auto made = [&](std::int64_t width) { return at::randn({tokens, width}, at::kFloat).to(type); };
    hidden_ = made(kElementwiseHidden);
    other_ = made(kElementwiseHidden);
    gate_ = made(kElementwiseFfn);
    up_ = made(kElementwiseFfn);
    weight_ = at::ones({kElementwiseHidden}, at::dtype(type));
    grad_weight_ = at::zeros({kElementwiseHidden}, at::dtype(kernels::accumulator_type(type)));
    normed_ = kernels::rms_norm(hidden_, weight_, 1e-5);
    turned_ = rotated();
    product_ = kernels::swiglu(gate_, up_);
  }

  void forward() {
    kernels::rms_norm(hidden_, weight_, 1e-5);
    rotated();
    rotated();
    kernels::rms_norm_of_sum(hidden_, other_, weight_, 1e-5, sum_);
    kernels::swiglu(gate_, up_);
    at::add(hidden_, other_);
  }
  void backward() {
    for (int half = 0; half < 2; ++half) {
      kernels::rms_norm_backward(other_, hidden_, weight_, normed_.scale, other_, grad_weight_);
      kernels::rope_backward(turned_, rotary_, 0, type_);
    }
    kernels::swiglu_backward(gate_, gate_, up_, product_);
  }

 private:
  at::Tensor rotated() {
    return kernels::rope(hidden_.view({1, tokens_, kElementwiseHidden}), rotary_, kElementwiseHeads, 0);
  }

  std::int64_t tokens_;
  at::ScalarType type_;
  kernels::RotaryTable rotary_;
  at::Tensor hidden_, other_, sum_, gate_, up_, product_, weight_, grad_weight_, turned_;
  kernels::Normed normed_;
};

}  // namespace

double forward_bytes(model::Precision precision) {
  const auto size = static_cast<double>(model::element_size(precision));
  return size * ((2 + 4 + 3 + 2 * 2) * kElementwiseHidden + 3 * kElementwiseFfn);
}

double backward_bytes(model::Precision precision) {
  const auto size = static_cast<double>(model::element_size(precision));
  return size * (2 * (4 + 2) * kElementwiseHidden + 5 * kElementwiseFfn);
}

ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  ElementwiseRates rates;
  for (const double tokens : sizes.elementwise_tokens) {
    const auto size = static_cast<double>(model::element_size(precision));
    const auto count = static_cast<std::int64_t>(tokens);
    const std::int64_t bytes =
        count * (3 * kElementwiseHidden + 3 * kElementwiseFfn) * model::element_size(precision);
    Ring<Layer> layers(cold_sets(bytes), [&] { return Layer(count, nn::compute_type(precision)); });
    rates.bytes.push_back(tokens * size * kElementwiseHidden);
    rates.forward.push_back(tokens * forward_bytes(precision) /
                            recorder.seconds([&] { layers.next().forward(); }));
    rates.backward.push_back(tokens * backward_bytes(precision) /
                             recorder.seconds([&] { layers.next().backward(); }));
  }
  return rates;
}

double measure_copy(Recorder& recorder) {
  constexpr std::size_t kSize = 64 << 20;
  std::vector<char> from(kSize, 1), to(kSize, 2);
  return kSize / recorder.seconds([&] { std::memcpy(to.data(), from.data(), kSize); });
}

}  // namespace penstock::profile
