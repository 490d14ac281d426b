// SPDX-License-Identifier: Apache-2.0
#include "model/memory/action.h"

#include <algorithm>

namespace penstock::model {
namespace {

// Replays one action of one stage on a tape, in the order of nn/stage.cpp and nn/decoder_layer.cpp.
class Action {
 public:
  Action(const ActionSize& size, const KernelSetting& setting)
      : size_(size),
        setting_(setting),
        shape_(size.shape),
        element_(element_size(setting.precision)),
        accumulator_(accumulator_size(setting.precision)),
        rows_(size.sequences * size.tokens),
        attention_{size.sequences, size.tokens,     size.earlier,
                   shape_.heads,   shape_.kv_heads, shape_.head_dim()} {}

  ActionMemory measured() const { return {tape_.greatest_temporary(), tape_.greatest_growth()}; }

  void forward() {
    begin(size_.first_stage || size_.handed_over);
    for (std::size_t layer = 0; layer < size_.keep.size(); ++layer) {
      complete(KeepSet{});
      tape_.take(wide(shape_.ffn));  // the product
      take_product(shape_.ffn, shape_.hidden);
      tape_.take(hidden());
      tape_.give(hidden());
      const bool message = layer == 0 && !size_.first_stage && !size_.handed_over;
      end_layer_forward(size_.keep[layer], message);
    }
    if (size_.last_stage) output_layer();
  }

  void backward(bool split) {
    if (!size_.last_stage) begin(size_.gradient_handed_over);
    for (std::size_t layer = size_.keep.size(); layer-- > 0;) {
      const KeepSet keep = size_.keep[layer];
      complete(keep);
      feed_forward_backward(keep);
      attention_backward();
      tape_.take(hidden());  // the gradient of the layer's input
      tape_.touch(norm_sums());
      end_layer_backward(keep, split, layer + 1 == size_.keep.size());
    }
    if (size_.first_stage) tape_.touch(ids());
  }

  void backward_weight() {
    for (std::size_t layer = 0; layer < size_.keep.size(); ++layer) {
      form_weight_gradients([&](Bytes bytes) { tape_.release(bytes); },
                            [&](SavedTensor, Bytes bytes) { tape_.release(bytes); },
                            [&] { tape_.release(hidden()); }, true);
    }
  }

 private:
  Bytes wide(std::int64_t width) const { return rows_ * width * element_; }
  Bytes hidden() const { return wide(shape_.hidden); }
  // Token ids of a slice of several sequences are strided, so their rows are copied.
  Bytes ids() const {
    const bool sliced = !size_.earlier.empty() || !size_.last_slice;
    return size_.sequences > 1 && sliced ? rows_ * kTokenIdBytes : 0;
  }
  Bytes norm_sums() const {
    return (rows_ + kNormBlockRows - 1) / kNormBlockRows * shape_.hidden * accumulator_;
  }
  Bytes accumulator_half() const { return rows_ * shape_.kv_width() * accumulator_; }
  // The gradient of the values is the accumulator itself when type and layout match.
  bool values_shared() const { return !setting_.narrow() && !setting_.tiled_attention; }

  // The input from another stage: a message, which is not a temporary, or a tensor of this device.
  void begin(bool temporary) {
    if (temporary) {
      tape_.take(hidden());
    } else {
      tape_.add(hidden());
    }
  }

  void take_product(std::int64_t in, std::int64_t out) {
    tape_.take(wide(out));
    tape_.touch(product_scratch(setting_, rows_, in, out));
  }

  Bytes numbers(SavedTensor tensor) const { return wide(numbers_per_token(shape_, tensor)); }
  Bytes statistics(SavedTensor tensor) const {
    return rows_ * statistics_bytes(shape_, KeepSet{}.with(tensor), accumulator_);
  }

  // Recomputes what `have` lacks, from norm 1 to gate and up, and leaves it on the tape.
  void complete(KeepSet have) {
    const auto lacks = [&](SavedTensor tensor) { return !have.has(tensor); };
    if (lacks(SavedTensor::NormOneOutput)) take_norm(SavedTensor::NormOneOutput);
    if (lacks(SavedTensor::Query)) project_and_turn(shape_.query_width());
    if (lacks(SavedTensor::KeyValue)) {
      project_and_turn(shape_.kv_width());
      take_product(shape_.hidden, shape_.kv_width());
    }
    if (lacks(SavedTensor::AttentionOutput)) attend(tape_, setting_, attention_);
    // The attention branch lives until it is added, in one pass with the norm where both are computed.
    if (lacks(SavedTensor::NormTwoInput)) {
      take_product(shape_.query_width(), shape_.hidden);
      tape_.take(hidden());
    }
    if (lacks(SavedTensor::NormTwoOutput)) take_norm(SavedTensor::NormTwoOutput);
    if (lacks(SavedTensor::NormTwoInput)) tape_.give(hidden());
    if (lacks(SavedTensor::GateUp)) {
      take_product(shape_.hidden, shape_.ffn);
      take_product(shape_.hidden, shape_.ffn);
    }
  }

  void take_norm(SavedTensor output) { tape_.take(numbers(output) + statistics(output)); }

  void project_and_turn(std::int64_t width) {
    take_product(shape_.hidden, width);
    tape_.take(wide(width));
    tape_.give(wide(width));
  }

  // The layer's output stays on the tape as the next layer's input.
  void end_layer_forward(KeepSet keep, bool input_is_message) {
    for (std::size_t i = 0; i < kSavedTensors; ++i) {
      const auto tensor = static_cast<SavedTensor>(i);
      if (tensor == SavedTensor::SiluGate) continue;
      if (tensor == SavedTensor::LayerInput && input_is_message) continue;
      const Bytes bytes = numbers(tensor) + statistics(tensor);
      keep.has(tensor) ? tape_.keep(bytes) : tape_.give(bytes);
    }
  }

  void output_layer() {
    const Tokens rows = std::min(size_.loss_tile, rows_);
    const Bytes logits = rows * shape_.vocab * element_;
    const Bytes tile_gradient = rows * shape_.hidden * element_;
    tape_.take(ids() + 2 * hidden() + rows_ * accumulator_);
    tape_.add(logits);
    tape_.touch(product_scratch(setting_, rows, shape_.hidden, shape_.vocab));
    tape_.take(tile_gradient);
    tape_.touch(product_scratch(setting_, rows, shape_.vocab, shape_.hidden));
    tape_.give(tile_gradient);
    tape_.touch(weight_gradient_scratch(setting_, rows, shape_.hidden, shape_.vocab));
    tape_.release(logits);
    tape_.take(hidden());
    tape_.touch(norm_sums());
  }

  // Leaves the operands of the products, and the gradients of norm 2's output and of the middle residual.
  void feed_forward_backward(KeepSet keep) {
    take_product(shape_.hidden, shape_.ffn);
    if (!keep.has(SavedTensor::Product)) tape_.take(wide(shape_.ffn));
    tape_.take(2 * wide(shape_.ffn));
    take_product(shape_.ffn, shape_.hidden);
    tape_.give(wide(shape_.ffn));
    tape_.take(hidden());
    tape_.touch(norm_sums());
  }

  // Leaves the gradients of query, key, value and norm 1's output.
  void attention_backward() {
    const Bytes query = wide(shape_.query_width());
    const bool sliced = !size_.earlier.empty();
    const Bytes copies = attention_.group() > 1 && sliced ? 2 * query : 0;
    take_product(shape_.hidden, shape_.query_width());
    tape_.take(copies);
    attend_backward(tape_, setting_, attention_, size_.last_slice);
    tape_.take(query + (values_shared() ? 1 : 2) * wide(shape_.kv_width()));
    if (setting_.narrow() && setting_.tiled_attention) tape_.touch(wide(shape_.kv_width()));  // reordered
    take_product(shape_.query_width(), shape_.hidden);
    const bool summed = sliced || setting_.wide_attention();
    const Bytes turned = rows_ * shape_.query_width() * (summed ? accumulator_ : element_);
    tape_.give(query + copies + turned);
  }

  void end_layer_backward(KeepSet keep, bool split, bool top) {
    tape_.give(2 * hidden());  // gradients of both norms' outputs
    const Bytes accumulators = (values_shared() ? 1 : 2) * accumulator_half();
    size_.last_slice ? tape_.give(accumulators) : tape_.release(accumulators);
    const auto drop = [&](SavedTensor tensor, Bytes bytes) {
      keep.has(tensor) ? tape_.release(bytes) : tape_.give(bytes);
    };
    using T = SavedTensor;
    for (const T tensor : {T::LayerInput, T::Query, T::KeyValue, T::NormTwoInput, T::GateUp}) {
      drop(tensor, numbers(tensor));
    }
    for (const T tensor : {T::NormOneOutput, T::AttentionOutput, T::NormTwoOutput}) {
      drop(tensor, statistics(tensor));
    }
    const bool temporary = !top || (!size_.last_stage && size_.gradient_handed_over);
    if (split) {
      keep_pending(keep, temporary);
      return;
    }
    const auto end_output_gradient = [&] {
      if (!top) tape_.give(hidden());
      if (top && size_.last_stage) tape_.release(hidden());
    };
    form_weight_gradients([&](Bytes bytes) { tape_.give(bytes); }, drop, end_output_gradient,
                          size_.last_slice);
  }

  void keep_pending(KeepSet keep, bool temporary_gradient) {
    const Bytes gradients = 2 * wide(shape_.ffn) + wide(shape_.query_width()) + wide(shape_.kv_width()) +
                            hidden() + (temporary_gradient ? hidden() : 0);
    tape_.keep(gradients);
    if (!values_shared() || size_.last_slice) tape_.keep(wide(shape_.kv_width()));
    using T = SavedTensor;
    for (const T tensor : {T::Product, T::NormTwoOutput, T::AttentionOutput, T::NormOneOutput}) {
      if (!keep.has(tensor)) tape_.keep(numbers(tensor));
    }
  }

  // In the order of the pending products; each operand is freed after its last product.
  template <class EndGradient, class EndInput, class EndOutputGradient>
  void form_weight_gradients(EndGradient&& end_gradient, EndInput&& end_input,
                             EndOutputGradient&& end_output_gradient, bool own_values) {
    const std::int64_t h = shape_.hidden, f = shape_.ffn, q = shape_.query_width(), k = shape_.kv_width();
    const auto form = [&](std::int64_t in, std::int64_t out) {
      tape_.touch(weight_gradient_scratch(setting_, rows_, in, out));
    };
    form(f, h);
    end_output_gradient();
    end_input(SavedTensor::Product, wide(f));
    form(h, f);
    end_gradient(wide(f));
    form(h, f);
    end_gradient(wide(f));
    end_input(SavedTensor::NormTwoOutput, hidden());
    form(q, h);
    end_gradient(hidden());
    end_input(SavedTensor::AttentionOutput, wide(q));
    form(h, q);
    end_gradient(wide(q));
    form(h, k);
    end_gradient(wide(k));
    form(h, k);
    if (values_shared() && !own_values) {
      tape_.release(wide(k));
    } else {
      end_gradient(wide(k));
    }
    end_input(SavedTensor::NormOneOutput, hidden());
  }

  const ActionSize& size_;
  const KernelSetting& setting_;
  const Shape& shape_;
  Bytes element_, accumulator_;
  Tokens rows_;
  AttentionSize attention_;
  Tape tape_;
};

}  // namespace

ActionMemory action_memory(const ActionSize& size, const KernelSetting& setting, ActionKind kind) {
  Action action(size, setting);
  if (kind == ActionKind::Forward) action.forward();
  if (kind == ActionKind::Backward || kind == ActionKind::BackwardInput) {
    action.backward(kind == ActionKind::BackwardInput);
  }
  if (kind == ActionKind::BackwardWeight) action.backward_weight();
  return action.measured();
}

Bytes logits_tile_bytes(const ActionSize& size, Precision precision) {
  if (!size.last_stage) return 0;
  const Tokens rows = std::min(size.loss_tile, size.sequences * size.tokens);
  return rows * size.shape.vocab * element_size(precision);
}

}  // namespace penstock::model
