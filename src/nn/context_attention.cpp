// SPDX-License-Identifier: Apache-2.0
#include "nn/context_attention.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "nn/earlier_part.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/row_dots.h"

namespace penstock::nn {
namespace {

using kernels::AttentionPart;
using kernels::Mask;
using model::SlicePart;

// One kernel call: queries, and the keys that they see, from one slice's record.
struct Call {
  SlicePart queries, keys;
  kernels::Visible visible;
};

// A run of a tensor's tokens, and its position in the sequence.
struct HeldRun {
  SlicePart held;
  std::int64_t position = 0;

  TokenRun run() const { return {position, held.length}; }
};

// Adds the call if any query sees any key.
void add_call(std::vector<Call>& calls, const Documents& documents, const HeldRun& queries,
              const HeldRun& keys, Mask mask) {
  if (queries.held.length == 0 || keys.held.length == 0) return;
  if (auto visible = documents.visible(mask, queries.run(), keys.run()))
    calls.push_back({queries.held, keys.held, *std::move(visible)});
}

// Calls for the slice's own keys. A run is at `place` in the whole slice and at `held` in the rank's own.
std::vector<Call> own_calls(const ContextGroup& context, const SlicePlace& slice, std::int64_t whole_tokens) {
  const TokenRuns runs = context.runs(whole_tokens);
  const std::int64_t length = runs.length, begin = context.slice_begin(slice);
  std::vector<Call> calls;
  const auto in_whole = [&](std::int64_t first, std::int64_t count) {
    return HeldRun{{.begin = first, .length = count}, begin + first};
  };
  const auto add = [&](std::int64_t place, std::int64_t held) {
    const HeldRun own{{.begin = held, .length = length}, begin + place};
    if (context.gathers_keys()) {
      add_call(calls, slice.documents, own, in_whole(place, length), Mask::Causal);
      add_call(calls, slice.documents, own, in_whole(0, place), Mask::None);
      return;
    }
    add_call(calls, slice.documents, in_whole(place, length), own, Mask::Causal);
    const std::int64_t after = place + length;
    add_call(calls, slice.documents, in_whole(after, whole_tokens - after), own, Mask::None);
  };
  add(runs.first, 0);
  add(runs.second, length);
  return calls;
}

// Splits the tokens [begin, begin + length) of a tensor into runs that are consecutive in the sequence.
std::vector<HeldRun> runs_of_part(const TokenRuns& runs, const SlicePart& part, std::int64_t slice_begin) {
  std::vector<HeldRun> parts;
  const std::int64_t end = part.begin + part.length;
  const auto add = [&](std::int64_t held, std::int64_t place) {
    const std::int64_t first = std::max(part.begin, held), last = std::min(end, held + runs.length);
    if (first < last)
      parts.push_back({{.slice = part.slice, .begin = first, .length = last - first},
                       slice_begin + place + first - held});
  };
  add(0, runs.first);
  add(runs.length, runs.second);
  return parts;
}

// The calls for a part of an earlier slice's keys; the tensors of seeing() have `queries` tokens.
std::vector<Call> earlier_calls(const ContextGroup& context, const SlicePlace& slice, std::int64_t queries,
                                const EarlierPart& part) {
  const SlicePart all{.begin = 0, .length = queries};
  if (!slice.documents.defined()) return {{all, part.part, Mask::None}};
  const std::int64_t begin = context.slice_begin(slice);
  const bool gathers = context.gathers_keys();
  const std::vector<HeldRun> of_queries =
      gathers ? runs_of_part(context.runs(queries * context.token_ranks()), all, begin)
              : std::vector{HeldRun{all, begin}};
  const std::int64_t held = (*part.record)[Saved::Key].size(2);
  const std::vector<HeldRun> of_keys =
      gathers ? std::vector{HeldRun{part.part, part.keys().first}}
              : runs_of_part(context.runs(held * context.token_ranks()), part.part, part.slice_begin);
  std::vector<Call> calls;
  for (const HeldRun& query_run : of_queries) {
    for (const HeldRun& key_run : of_keys) add_call(calls, slice.documents, query_run, key_run, Mask::None);
  }
  return calls;
}

at::Tensor queries_of(const at::Tensor& x, const SlicePart& part) {
  if (part.length == x.size(2)) return x.contiguous();
  return x.narrow(2, part.begin, part.length).contiguous();
}

std::int64_t whole_tokens(const ContextGroup& context, const LayerRecord& record) {
  return record[Saved::Query].size(2) * context.token_ranks();
}

// The tokens whose queries see this rank's keys.
at::Tensor seeing(const ContextGroup& context, const at::Tensor& shared) {
  return context.gathers_keys() ? shared.contiguous() : context.to_whole(shared);
}

std::vector<EarlierPart> earlier_parts(const ContextGroup& context, const SlicePlace& place,
                                       EarlierSlices earlier, const AttentionPartners* partners) {
  const std::int64_t ranks = context.gathers_keys() ? 1 : context.token_ranks();
  return parts_at_home(earlier, partners, context.slice_begin(place), ranks);
}

}  // namespace

std::vector<EarlierPart> parts_at_home(EarlierSlices earlier, const AttentionPartners* partners,
                                       std::int64_t slice_begin, std::int64_t ranks) {
  const int count = static_cast<int>(earlier.size()), away = partners ? partners->halves() : 0;
  std::vector<EarlierPart> parts;
  for (int slice = count - 1; slice >= 0; --slice) {
    LayerRecord* record = earlier[count - 1 - slice];
    const std::int64_t tokens = (*record)[Saved::Key].size(2);
    slice_begin -= tokens * ranks;
    const SlicePart part = model::part_in_halves(slice, tokens, away, 2 * count - away);
    if (part.length > 0) parts.push_back({record, part, slice_begin});
  }
  return parts;
}

AttentionPart attend_in_context(const ContextGroup& context, const SlicePlace& place, EarlierSlices earlier,
                                LayerRecord& record, AttentionPartners* partners) {
  const at::Tensor query = seeing(context, record[Saved::Query]);
  if (partners) partners->post_queries(query);
  AttentionPart total = kernels::no_attention(query.sizes(), query);
  const auto add = [&](const LayerRecord& slice, const Call& call) {
    const KeyValues keys = keys_and_values(slice, call.keys);
    kernels::merge_at(total, call.queries.begin,
                      kernels::attend(queries_of(query, call.queries), keys.key, keys.value, call.visible));
  };
  for (const Call& call : own_calls(context, place, whole_tokens(context, record))) add(record, call);
  for (const EarlierPart& part : earlier_parts(context, place, earlier, partners)) {
    for (const Call& call : earlier_calls(context, place, query.size(2), part)) add(*part.record, call);
  }
  if (partners) partners->merge(total);
  return context.gathers_keys() ? total : context.merge_to_shared(total);
}

namespace {

// The gradient of seeing()'s queries, in the accumulator type; adds those of keys and values to the records.
at::Tensor gradient_of_seeing(const ContextGroup& context, const SlicePlace& place,
                              const at::Tensor& grad_output, const at::Tensor& dots, EarlierSlices earlier,
                              LayerRecord& record, AttentionPartners* partners) {
  const at::Tensor query = seeing(context, record[Saved::Query]), grad = seeing(context, grad_output);
  const AttentionPart merged{kernels::with_row_dots(grad, seeing(context, dots)),
                             seeing(context, record[Saved::LogSumExp].unsqueeze(3)).squeeze(3)};
  if (partners) partners->post_gradients(query, merged, grad);
  at::Tensor grad_query =
      at::zeros(query.sizes(), query.options().dtype(kernels::accumulator_type(query.scalar_type())));
  // Key and value gradients of this slice that start here do not outlive this action.
  const model::Category of_own =
      record.key_gradient.defined() ? model::Category::KvGradients : model::Category::Transient;
  const auto add = [&](LayerRecord& slice, const Call& call, model::Category category) {
    const KeyValues keys = keys_and_values(slice, call.keys);
    const AttentionPart part{queries_of(merged.output, call.queries),
                             queries_of(merged.log_sum_exp, call.queries)};
    const auto gradients =
        kernels::attend_backward(queries_of(grad, call.queries), queries_of(query, call.queries), keys.key,
                                 keys.value, part, call.visible);
    at::Tensor place = grad_query.narrow(2, call.queries.begin, call.queries.length);
    kernels::accumulate(place, gradients.query);
    add_gradients(slice, call.keys, {gradients.key, gradients.value}, category);
  };
  for (const Call& call : own_calls(context, place, whole_tokens(context, record))) add(record, call, of_own);
  for (const EarlierPart& part : earlier_parts(context, place, earlier, partners)) {
    for (const Call& call : earlier_calls(context, place, query.size(2), part))
      add(*part.record, call, model::Category::KvGradients);
  }
  if (partners) partners->add_gradients(grad_query, earlier);
  return grad_query;
}

}  // namespace

at::Tensor attend_in_context_backward(const ContextGroup& context, const SlicePlace& place,
                                      const at::Tensor& grad_output, const at::Tensor& dots,
                                      EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners) {
  // What it has made of the whole slice is free before the sums.
  at::Tensor grad_query = gradient_of_seeing(context, place, grad_output, dots, earlier, record, partners);
  if (!context.gathers_keys()) return context.sum_to_shared(grad_query);
  record.key_gradient = context.sum_to_shared(record.key_gradient);
  record.value_gradient = context.sum_to_shared(record.value_gradient);
  return grad_query;
}

}  // namespace penstock::nn
