// SPDX-License-Identifier: Apache-2.0
#include "profile/memory_work.h"

#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "backend/copy.h"
#include "backend/copy_lane.h"
#include "backend/device.h"
#include "backend/host_memory.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/rope.h"
#include "nn/kernels/swiglu.h"
#include "nn/stage_parameters.h"
#include "profile/ring.h"

namespace penstock::profile {
namespace {

namespace kernels = nn::kernels;

model::Shape measured_shape(const Sizes& sizes) {
  model::Shape shape;
  shape.hidden = sizes.elementwise_hidden;
  shape.ffn = sizes.elementwise_ffn;
  shape.heads = shape.kv_heads = sizes.elementwise_heads;
  return shape;
}

// A layer without its products and attention.
class Layer {
 public:
  Layer(const Sizes& sizes, std::int64_t tokens, at::ScalarType type)
      : tokens_(tokens),
        heads_(sizes.elementwise_heads),
        type_(type),
        rotary_(kernels::rotary_table(measured_shape(sizes), tokens, type)) {
    const auto made = [&](std::int64_t width) {
      return at::randn({tokens, width}, backend::on_device(at::kFloat)).to(type);
    };
    const std::int64_t hidden = sizes.elementwise_hidden;
    hidden_ = made(hidden);
    other_ = made(hidden);
    gate_ = made(sizes.elementwise_ffn);
    up_ = made(sizes.elementwise_ffn);
    grad_product_ = at::zeros_like(up_);
    weight_ = at::ones({hidden}, backend::on_device(type));
    grad_weight_ = at::zeros({hidden}, backend::on_device(kernels::accumulator_type(type)));
    normed_ = kernels::rms_norm(hidden_, weight_, 1e-5);
    turned_ = rotated();
    product_ = kernels::swiglu(gate_, up_);
  }

  // Deep copy, but for the rotary table, which layers share.
  Layer copy() const {
    Layer other = *this;
    for (at::Tensor* tensor :
         {&other.hidden_, &other.other_, &other.gate_, &other.up_, &other.grad_product_, &other.product_,
          &other.weight_, &other.grad_weight_, &other.turned_, &other.normed_.output, &other.normed_.scale})
      *tensor = tensor->clone();
    return other;
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
    // Gate and up become their gradients, which are zeros: repeated calls get no numbers near zero, which are
    // slow on some processors.
    kernels::swiglu_backward(grad_product_, gate_, up_, product_);
  }

 private:
  at::Tensor rotated() {
    return kernels::rope(hidden_.view({1, tokens_, hidden_.size(1)}), rotary_, heads_, 0);
  }

  std::int64_t tokens_, heads_;
  at::ScalarType type_;
  kernels::RotaryTable rotary_;
  at::Tensor hidden_, other_, sum_, gate_, up_, grad_product_, product_, weight_, grad_weight_, turned_;
  kernels::Normed normed_;
};

}  // namespace

double forward_bytes(model::Precision precision, const Sizes& sizes) {
  const auto size = static_cast<double>(model::element_size(precision));
  const auto hidden = static_cast<double>(sizes.elementwise_hidden),
             ffn = static_cast<double>(sizes.elementwise_ffn);
  return size * ((2 + 4 + 3 + 2 * 2) * hidden + 3 * ffn);
}

double backward_bytes(model::Precision precision, const Sizes& sizes) {
  const auto size = static_cast<double>(model::element_size(precision));
  const auto hidden = static_cast<double>(sizes.elementwise_hidden),
             ffn = static_cast<double>(sizes.elementwise_ffn);
  return size * (2 * (4 + 2) * hidden + 5 * ffn);
}

ElementwiseRates measure_elementwise(Recorder& recorder, const Sizes& sizes, model::Precision precision) {
  ElementwiseRates rates;
  const std::int64_t widths = 3 * sizes.elementwise_hidden + 3 * sizes.elementwise_ffn;
  for (const double tokens : sizes.elementwise_tokens) {
    const auto size = static_cast<double>(model::element_size(precision));
    const auto count = static_cast<std::int64_t>(tokens);
    const std::int64_t bytes = count * widths * model::element_size(precision);
    Ring<Layer> layers(cold_sets(recorder.effort(), bytes),
                       [drawn = Layer(sizes, count, nn::compute_type(precision))] { return drawn.copy(); });
    rates.bytes.push_back(tokens * size * static_cast<double>(sizes.elementwise_hidden));
    rates.forward.push_back(tokens * forward_bytes(precision, sizes) /
                            recorder.seconds([&] { layers.next().forward(); }));
    rates.backward.push_back(tokens * backward_bytes(precision, sizes) /
                             recorder.seconds([&] { layers.next().backward(); }));
  }
  return rates;
}

double measure_copy(Recorder& recorder, const Sizes& sizes) {
  const at::Tensor from = at::ones({sizes.copy_bytes}, backend::on_device(at::kByte));
  const at::Tensor to = at::zeros_like(from);
  return static_cast<double>(sizes.copy_bytes) / recorder.seconds([&] {
    backend::copy_bytes(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
  });
}

double measure_host_link(Recorder& recorder, const Sizes& sizes) {
  const at::Tensor leaving = at::ones({sizes.copy_bytes}, backend::on_device(at::kByte));
  const at::Tensor arriving = at::zeros_like(leaving);
  constexpr const char* kPurpose = "the speed of copies";
  const backend::HostMemory to(sizes.copy_bytes, kPurpose), from(sizes.copy_bytes, kPurpose);
  backend::CopyLane out, in;
  return static_cast<double>(sizes.copy_bytes) / recorder.seconds([&] {
    const auto left =
        out.post([&] { backend::copy_bytes(to.bytes().data(), leaving.const_data_ptr(), leaving.nbytes()); });
    const auto arrived = in.post(
        [&] { backend::copy_bytes(arriving.mutable_data_ptr(), from.bytes().data(), arriving.nbytes()); });
    out.wait(left);
    in.wait(arrived);
  });
}

}  // namespace penstock::profile
