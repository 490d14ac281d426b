// SPDX-License-Identifier: Apache-2.0
#include "model/memory/action.h"

#include <algorithm>
#include <utility>

#include "model/memory/context_attention.h"
#include "model/memory/layer_forward.h"
#include "model/memory/visit.h"

namespace penstock::model {
namespace {

// Replays one action of one stage on a tape, in the order of nn/stage.cpp and nn/decoder_layer.cpp. A single
// logical shard has all rows, so gather and scatter take nothing; several are computed one after the other
// between a gather and a scatter.
class Action : LayerForward {
 public:
  Action(const ActionSize& size, const KernelSetting& setting) : LayerForward(size, setting) {}

  ActionMemory measured() const {
    return {tape_.greatest_temporary(), tape_.greatest_growth(), logits_, messages_};
  }

  void forward() {
    if (size_.first_stage && is_split()) {
      embed();
    } else {
      begin(size_.first_stage || size_.handed_over);
    }
    for (std::size_t layer = 0; layer < size_.keep.size(); ++layer) {
      complete(KeepSet{}, false);
      if (has_experts()) {
        mixture().forward();
      } else {
        tape_.take(wide(shape_.ffn));  // the product
        scatter(ffn);
      }
      tape_.take(hidden());
      tape_.give(hidden());
      const bool message = layer == 0 && !size_.first_stage && !size_.handed_over;
      end_layer_forward(size_.keep[layer], message);
    }
    if (!size_.last_stage || size_.sharded_vocabulary) return join();
    is_split() ? shared_output_layer() : output_layer();
  }

  void backward(bool split) {
    if (!size_.last_stage) begin(size_.gradient_handed_over);
    for (std::size_t layer = size_.keep.size(); layer-- > 0;) {
      const KeepSet keep = size_.keep[layer];
      const bool top = layer + 1 == size_.keep.size();
      complete(keep, true);
      feed_forward_backward(keep);
      if (!split) {
        form_feed_forward_products([&](Bytes bytes) { tape_.give(bytes); },
                                   [&](SavedTensor tensor, Bytes bytes) { drop(keep, tensor, bytes); },
                                   [] {});
      }
      tape_.take(hidden());  // the gradient of norm 2's input
      tape_.touch(norm_sums());
      if (!split || !has_output_gradient_pending()) end_output_gradient(top);
      tape_.give(hidden());  // the gradient of norm 2's output
      attention_backward();
      tape_.take(hidden());  // the gradient of the layer's input
      tape_.touch(norm_sums());
      end_layer_backward(keep, split, top);
    }
    if (!size_.first_stage || size_.sharded_vocabulary) join();
    if (!size_.first_stage) return;
    gather();
    tape_.touch(ids());
    end_gather();
  }

  void backward_weight() {
    kept_.fill(false);
    const auto end_gradient = [&](Bytes bytes) { tape_.release(bytes); };
    const auto end_saved = [&](SavedTensor, Bytes bytes) { tape_.release(bytes); };
    for (std::size_t layer = 0; layer < size_.keep.size(); ++layer) {
      form_feed_forward_products(end_gradient, end_saved, [&] { tape_.release(hidden()); });
      form_attention_products(end_gradient, end_saved, true);
    }
  }

 private:
  // With several sequences a slice's token ids are strided, so they are copied.
  Bytes ids() const {
    const bool sliced = !size_.earlier.empty() || !size_.last_slice;
    return size_.sequences > 1 && sliced ? rows_ * kTokenIdBytes : 0;
  }
  Bytes accumulator_half() const { return rows_ * shape_.kv_width() * accumulator_; }
  // The gradient of the values is the accumulator itself if type and layout match. Our own kernel's rows are
  // ordered by head, then by token.
  bool values_shared() const { return !setting_.narrow() && !in_context() && !reorders_values(); }
  bool reorders_values() const { return setting_.tiled_attention && shards_.front().kv_heads > 1; }

  // The input from another stage: a tensor of this device (temporary), or a message (not a temporary).
  void begin(bool temporary) {
    if (temporary) {
      tape_.take(hidden());
    } else {
      tape_.add(hidden());
    }
  }

  void output_layer() {
    const Tokens rows = std::min(size_.loss_tile, rows_);
    const Bytes logits = rows * shape_.vocab * element_;
    const Bytes tile_gradient = rows * shape_.hidden * element_;
    tape_.take(ids() + 2 * hidden() + rows_ * accumulator_);
    tape_.add(logits);
    logits_ = logits;
    tape_.touch(product_scratch(setting_, rows, shape_.hidden, shape_.vocab));
    tape_.take(tile_gradient);
    tape_.touch(product_scratch(setting_, rows, shape_.vocab, shape_.hidden));
    tape_.give(tile_gradient);
    tape_.touch(weight_gradient_scratch(setting_, rows, shape_.hidden, shape_.vocab));
    tape_.release(logits);
    tape_.take(hidden());
    tape_.touch(norm_sums());
  }

  // The output layer of the last stage's tensor-parallel ranks. Its input stays on the tape until then.
  void shared_output_layer() {
    const VisitSize visit{.shape = size_.shape,
                          .tensor = size_.tensor,
                          .sequences = size_.sequences,
                          .tokens = size_.tokens,
                          .sliced = !size_.earlier.empty() || !size_.last_slice,
                          .loss_tile = size_.loss_tile};
    const VisitMemory memory = visit_memory(visit, setting_);
    tape_.give(hidden());
    tape_.peak(memory.temporary, memory.growth);
    tape_.take(2 * hidden());
    join();
    logits_ = memory.logits;
    messages_ = memory.messages;
  }

  // Leaves the operands of the products and the gradient of norm 2's output. The gradients of gate and up
  // overwrite them, and a product that was not saved overwrites its gradient.
  void feed_forward_backward(KeepSet keep) {
    if (has_experts()) {
      mixture().backward(keep);
      drop(keep, SavedTensor::GateUp, statistics(SavedTensor::GateUp));
      return;
    }
    gather_input(kGradient, true);
    for (const Shape& shard : shards_) {
      take_product(shard.hidden, shard.ffn);
      if (keep.has(SavedTensor::Product)) tape_.give(wide(shard.ffn));
    }
    scatter(ffn);
  }

  // Leaves the gradients of query, key, value and norm 1's output.
  void attention_backward() {
    gather_input(kMiddle, true);
    Bytes unused = 0;
    for (const Shape& shard : shards_) {
      take_product(shard.hidden, shard.query_width());
      unused += in_context() ? attend_backward_shared(shard) : attend_backward_alone(shard);
      if (shard.head_norms) touch_norms_of_heads(shard);
    }
    scatter(queries);
    tape_.give(unused);
  }

  // Returns the bytes that are unused after the sum over all shards.
  Bytes attend_backward_alone(const Shape& shard) {
    const Bytes query = wide(shard.query_width()), key = wide(shard.kv_width());
    const AttentionSize attention = attention_of(shard);
    const bool sliced = !size_.earlier.empty();
    const Bytes copies = attention.group() > 1 && sliced && !setting_.gpu ? 2 * query : 0;
    tape_.take(copies);
    const Bytes gradient = attend_backward(tape_, setting_, attention, size_.last_slice);
    tape_.take(query + (values_shared() ? 1 : 2) * key);
    if (setting_.narrow() && reorders_values()) tape_.touch(key);
    return query + copies + gradient;
  }

  // The gradients before and after the head norms of queries, then of keys, are alive together: counts the
  // excess over all three results.
  void touch_norms_of_heads(const Shape& shard) {
    const Bytes query = wide(shard.query_width()), key = wide(shard.kv_width());
    const Bytes results = query + (values_shared() ? 1 : 2) * key;
    const auto sums = [&](std::int64_t heads) {
      return setting_.norm_blocks(rows_ * heads) * shard.head_dim() * accumulator_;
    };
    tape_.touch(std::max<Bytes>(2 * query + sums(shard.heads) - results, 0));
    tape_.touch(query + 2 * key + sums(shard.kv_heads) - results);
  }

  Bytes attend_backward_shared(const Shape& shard) {
    const ContextLeft left = attend_in_context_backward(tape_, context_of(shard));
    key_gradients_ += left.gradients;
    summed_key_gradients_ += left.summed;
    return left.unused;
  }

  // Frees the gradients of the slice's own keys and values before the rotation.
  void end_key_gradients() {
    const Bytes accumulators = (values_shared() ? 1 : 2) * accumulator_half();
    if (!in_context()) return size_.last_slice ? tape_.give(accumulators) : tape_.release(accumulators);
    tape_.give(std::exchange(key_gradients_, 0));
    tape_.release(std::exchange(summed_key_gradients_, 0));
  }

  // Frees bytes of a tensor that was saved or that this action has recomputed.
  void drop(KeepSet keep, SavedTensor tensor, Bytes bytes) {
    keep.has(tensor) ? tape_.release(bytes) : tape_.give(bytes);
  }

  // Frees the gradient of the layer's output, which the residual stream needs until norm 2's input.
  void end_output_gradient(bool top) {
    if (!top) tape_.give(hidden());
    if (top && size_.last_stage) tape_.release(hidden());
  }

  void end_layer_backward(KeepSet keep, bool split, bool top) {
    tape_.give(hidden());  // the gradient of norm 1's output
    end_key_gradients();
    using T = SavedTensor;
    for (const T tensor : {T::LayerInput, T::Query, T::KeyValue, T::NormTwoInput}) {
      drop(keep, tensor, numbers(tensor));
    }
    for (const T tensor : {T::NormOneOutput, T::Query, T::AttentionOutput, T::NormTwoOutput}) {
      drop(keep, tensor, statistics(tensor));
    }
    if (split) {
      for (const bool kept : kept_) {
        if (kept) end_gather();
      }
      keep_pending(keep, !top || (!size_.last_stage && size_.gradient_handed_over));
      return;
    }
    form_attention_products([&](Bytes bytes) { tape_.give(bytes); },
                            [&](SavedTensor tensor, Bytes bytes) { drop(keep, tensor, bytes); },
                            size_.last_slice);
  }

  void keep_pending(KeepSet keep, bool temporary_gradient) {
    tape_.keep(wide(shape_.query_width()) + wide(shape_.kv_width()) + hidden());
    if (has_experts()) tape_.keep(mixture().pending_gradients());
    if (has_output_gradient_pending() && temporary_gradient) tape_.keep(hidden());
    if (!values_shared() || size_.last_slice) tape_.keep(wide(shape_.kv_width()));
    using T = SavedTensor;
    for (const T tensor :
         {T::GateUp, T::Product, T::Dispatched, T::NormTwoOutput, T::AttentionOutput, T::NormOneOutput}) {
      if (!keep.has(tensor)) tape_.keep(numbers(tensor));
    }
  }

  void form_product(std::int64_t in, std::int64_t out) {
    tape_.touch(weight_gradient_scratch(setting_, rows_, in, out));
  }

  // Forms each shard's products with these rows, which are gathered again if not kept.
  template <class Form>
  void form_products(Shared rows, Form&& form) {
    if (!kept_[rows]) gather();
    for (const Shape& shard : shards_) form(shard, shard.hidden);
    end_gather();
  }

  // In the order of the pending products. Frees each operand after its last product: a gradient, or a saved
  // tensor or its replacement.
  template <class EndGradient, class EndSaved, class EndOutputGradient>
  void form_feed_forward_products(EndGradient&& end_gradient, EndSaved&& end_saved,
                                  EndOutputGradient&& end_output_gradient) {
    using T = SavedTensor;
    if (has_experts()) {
      mixture().form_weight_gradients();
      end_gradient(mixture().pending_gradients());
      if (has_output_gradient_pending()) end_output_gradient();
      for (const T tensor : {T::GateUp, T::Product, T::Dispatched}) end_saved(tensor, numbers(tensor));
    } else {
      form_products(kGradient, [&](const Shape& shard, std::int64_t h) { form_product(shard.ffn, h); });
      end_output_gradient();
      end_saved(T::Product, wide(shape_.ffn));
      form_products(kNormTwo, [&](const Shape& shard, std::int64_t h) {
        for (int product = 0; product < 2; ++product) {
          form_product(h, shard.ffn);
          end_saved(T::GateUp, wide(shard.ffn));
        }
      });
    }
    end_saved(T::NormTwoOutput, hidden());
  }

  template <class EndGradient, class EndSaved>
  void form_attention_products(EndGradient&& end_gradient, EndSaved&& end_saved, bool own_values) {
    form_products(kMiddle, [&](const Shape& shard, std::int64_t h) { form_product(shard.query_width(), h); });
    end_gradient(hidden());
    end_saved(SavedTensor::AttentionOutput, wide(shape_.query_width()));
    form_products(kNormOne, [&](const Shape& shard, std::int64_t h) {
      form_product(h, shard.query_width());
      end_gradient(wide(shard.query_width()));
      form_product(h, shard.kv_width());
      end_gradient(wide(shard.kv_width()));
      form_product(h, shard.kv_width());
      if (values_shared() && !own_values) {
        tape_.release(wide(shard.kv_width()));
      } else {
        end_gradient(wide(shard.kv_width()));
      }
    });
    end_saved(SavedTensor::NormOneOutput, hidden());
  }

  static std::int64_t ffn(const Shape& shard) { return shard.ffn; }

  // Routed experts keep the gradient's rows pending instead of the gradient itself.
  bool has_output_gradient_pending() const { return !has_experts() || shape_.shared_ffn > 0; }

  Bytes key_gradients_ = 0, summed_key_gradients_ = 0;  // of own keys and values, in a context group
  Bytes logits_ = 0, messages_ = 0;
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

}  // namespace penstock::model
