// SPDX-License-Identifier: Apache-2.0
#include "model/memory/context_attention.h"

namespace penstock::model {
namespace {

// Members count elements: queries, their rows, and keys (or values) of this rank; keys in the shared frame;
// keys in the cache.
class ContextTape {
 public:
  ContextTape(Tape& tape, const ContextAttentionSize& size)
      : tape_(tape),
        setting_(size.setting),
        context_(size.context),
        own_(size.own),
        last_slice_(size.last_slice),
        element_(element_size(setting_.precision)),
        accumulator_(accumulator_size(setting_.precision)),
        seeing_(context_.gathers ? 1 : context_.token_ranks()),
        rows_(own_.rows() * own_.heads),
        queries_(rows_ * own_.head_dim),
        keys_(own_.rows() * own_.kv_heads * own_.head_dim),
        shared_keys_(own_.rows() * context_.heads * key_heads() * own_.head_dim),
        cached_keys_(context_.gathers ? shared_keys_ * context_.ranks : shared_keys_) {}

  // An all-to-all of `travelling` bytes and the result made of them; leaves the result.
  void exchange(Bytes travelling, Bytes result) {
    tape_.take(2 * travelling + result);
    tape_.give(2 * travelling);
  }

  void share_queries() {
    if (!shares_heads()) return;
    exchange(queries_ * element_, queries_ * element_);
    tape_.give(queries_ * element_);
  }

  void share_keys(bool contiguous) {
    if (shares_heads()) exchange(shared_keys_ * element_, shared_keys_ * element_);
    const bool ordered = contiguous || own_.kv_heads == 1;
    if (context_.gathers) gather(keys_ * element_, cached_keys_ * element_, ordered);
    if (shares_heads() || context_.gathers) tape_.give(keys_ * element_);
  }

  void attend() {
    if (context_.token_ranks() == 1) {
      model::attend(tape_, setting_, shared_size());
      const bool wide = setting_.narrow() && (setting_.wide_attention() || !own_.earlier.empty());
      return tape_.touch((wide ? queries_ * accumulator_ : 0) + 3 * queries_ * element_);
    }
    attend_among_tokens();
    const Bytes rounded = setting_.narrow() ? queries_ * element_ : 0;
    tape_.touch(rounded + (shares_heads() ? 3 : 1) * queries_ * element_);
    tape_.give(queries_ * accumulator_);
    tape_.take(queries_ * element_);
  }

  ContextLeft backward() {
    const Bytes query = queries_ * element_, dots = rows_ * accumulator_;
    tape_.take(dots);
    if (shares_heads()) {
      tape_.touch(3 * dots);
      exchange(query, query);
    }
    ContextLeft left{.unused = (shares_heads() ? 3 : 1) * query};
    if (context_.token_ranks() == 1) {
      tape_.take(query);  // stands for the output
      left.unused += query;
      own_queries(attend_backward(tape_, setting_, shared_size(), last_slice_));
    } else {
      backward_among_tokens();
      if (shares_heads()) own_queries(queries_ * accumulator_);
    }
    if (!shares_heads()) left.unused += queries_ * accumulator_;
    tape_.give(dots);
    end_key_gradients(left);
    tape_.take(query + 2 * keys_ * element_);
    if (setting_.narrow() && !shares_heads()) tape_.touch(keys_ * element_);  // reordered
    return left;
  }

 private:
  bool shares_heads() const { return context_.heads > 1; }
  std::int64_t key_heads() const { return context_.kept_heads(own_.kv_heads); }

  AttentionSize size_of(Tokens queries) const {
    return {.sequences = own_.sequences,
            .tokens = queries,
            .heads = own_.heads / context_.heads,
            .kv_heads = key_heads(),
            .head_dim = own_.head_dim,
            .by_head = true};
  }
  AttentionSize shared_size() const {
    AttentionSize size = size_of(own_.tokens * context_.heads);
    for (const Tokens length : own_.earlier) size.earlier.push_back(length * context_.heads);
    return size;
  }
  Tokens seeing_tokens() const { return own_.tokens * context_.heads * seeing_; }
  // Copies of some of the tokens, which are apart in memory unless they are of one head of one sequence, and
  // of `numbers` more bytes a token and head.
  Bytes copies_of(Tokens tokens, int tensors, Bytes numbers) const {
    const std::int64_t rows = own_.sequences * own_.heads / context_.heads;
    return rows == 1 ? 0 : rows * tokens * (tensors * own_.head_dim * element_ + numbers);
  }

  // Makes a tensor from another of the same size; leaves the new one.
  void pass_on(Bytes bytes) {
    tape_.take(2 * bytes);
    tape_.give(bytes);
  }

  // Gathers all ranks' parts of a tensor, then orders them; leaves the result.
  void gather(Bytes own, Bytes whole, bool contiguous) {
    const Bytes copy = contiguous ? 0 : own;
    tape_.take(copy);
    pass_on(whole);
    tape_.give(copy);
  }

  // Calls use(queries, keys, causal) for each kernel call over the slice's own keys.
  template <class Use>
  void for_own_calls(Use&& use) const {
    const Tokens whole = own_.tokens * context_.ranks, run = own_.tokens * context_.heads / 2;
    use(run, run, true);
    if (!context_.gathers) use(whole - run, run, false);
    use(run, run, true);
    if (context_.gathers) use(run, whole - run, false);
  }

  // Leaves output and log-sum-exp in the accumulator type.
  void attend_among_tokens() {
    const Bytes query = seeing_ * queries_ * element_, rows = rows_ * accumulator_;
    const Bytes total = seeing_ * (queries_ * accumulator_ + rows);
    if (!context_.gathers) gather(queries_ * element_, query, true);
    tape_.take(total);
    for_own_calls([&](Tokens queries, Tokens keys, bool causal) {
      tape_.take(copies_of(queries, 1, 0));
      touch_attention(tape_, setting_, size_of(queries), keys, causal);
      tape_.give(copies_of(queries, 1, 0));
    });
    for (const Tokens length : own_.earlier)
      touch_attention(tape_, setting_, size_of(seeing_tokens()), length * context_.kept_tokens(), false);
    if (context_.gathers) return;
    pass_on(seeing_ * queries_ * accumulator_);
    pass_on(seeing_ * rows);
    tape_.take(queries_ * accumulator_ + rows);
    tape_.give(2 * total + query);
  }

  // Leaves the gradient of the shared queries in the accumulator type, and the accumulators of the slice's
  // keys and values if they begin here.
  void backward_among_tokens() {
    const Bytes query = seeing_ * queries_ * element_, rows = seeing_ * rows_ * accumulator_;
    const Bytes wide = seeing_ * queries_ * accumulator_;
    Bytes held = 0;
    const auto take = [&](Bytes bytes) {
      tape_.take(bytes);
      held += bytes;
    };
    if (context_.gathers) {
      take(own_.heads > 1 ? query : 0);  // the contiguous gradient
    } else {
      tape_.touch(2 * query);
      take(query);
      tape_.touch((shares_heads() ? 0 : queries_ * element_) + 2 * query);
      take(query);
      tape_.touch(2 * rows);
      take(rows);
    }
    take(query);  // stands for the output
    take(wide);
    bool begins = last_slice_;
    for_own_calls([&](Tokens queries, Tokens keys, bool causal) {
      const Bytes copies = copies_of(queries, 3, accumulator_);
      tape_.take(copies);
      const Bytes results = touch_attention_backward(tape_, setting_, size_of(queries), keys, causal);
      tape_.take(results);
      if (begins) tape_.take(2 * cached_keys_ * accumulator_);
      begins = false;
      tape_.give(copies + results);
    });
    for (const Tokens length : own_.earlier)
      attend_backward_earlier(tape_, setting_, size_of(seeing_tokens()), length * context_.kept_tokens(),
                              last_slice_);
    tape_.give(held - wide);
    if (context_.gathers) return;
    tape_.touch(2 * wide);
    tape_.touch(wide + queries_ * accumulator_);
    tape_.give(wide);
    tape_.take(queries_ * accumulator_);
  }

  // Converts the shared queries' gradient, of `gradient` bytes, to the own frame.
  void own_queries(Bytes gradient) {
    const Bytes query = queries_ * element_;
    const Bytes rounded = gradient == query ? 0 : query;
    tape_.take(rounded);
    exchange(query, query);
    tape_.give(rounded + gradient);
  }

  // Converts the gradients of the slice's own keys and values from the records' frame to the own frame.
  void end_key_gradients(ContextLeft& left) {
    const Bytes summed = cached_keys_ * accumulator_;
    if (!shares_heads() && !context_.gathers) {
      (last_slice_ ? left.gradients : left.summed) = 2 * summed;
      return;
    }
    const Bytes number = shares_heads() ? element_ : accumulator_;
    for (int tensor = 0; tensor < 2; ++tensor) {
      if (shares_heads()) {
        const Bytes rounded = setting_.narrow() ? shared_keys_ * element_ : 0;
        tape_.take(rounded);
        exchange(shared_keys_ * element_, keys_ * element_);
        tape_.give(rounded);
      } else {
        tape_.touch(2 * summed);
        tape_.touch(summed + keys_ * accumulator_);
        tape_.take(keys_ * accumulator_);
      }
      last_slice_ ? tape_.give(summed) : tape_.release(summed);
    }
    left.gradients = 2 * keys_ * number;
  }

  Tape& tape_;
  const KernelSetting& setting_;
  const ContextSplit context_;
  const AttentionSize& own_;
  const bool last_slice_;
  const Bytes element_, accumulator_;
  const std::int64_t seeing_;  // number of ranks whose queries are gathered
  const std::int64_t rows_, queries_, keys_, shared_keys_, cached_keys_;
};

}  // namespace

void share_queries(Tape& tape, const ContextAttentionSize& size) { ContextTape(tape, size).share_queries(); }

void share_keys(Tape& tape, const ContextAttentionSize& size, bool contiguous) {
  ContextTape(tape, size).share_keys(contiguous);
}

void attend_in_context(Tape& tape, const ContextAttentionSize& size) { ContextTape(tape, size).attend(); }

ContextLeft attend_in_context_backward(Tape& tape, const ContextAttentionSize& size) {
  return ContextTape(tape, size).backward();
}

}  // namespace penstock::model
