// SPDX-License-Identifier: Apache-2.0
#include "nn/context_attention.h"

#include <ATen/ops/zeros.h>

#include "nn/earlier_part.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/row_dots.h"

namespace penstock::nn {
namespace {

using kernels::AttentionPart;
using kernels::Mask;
using model::SlicePart;

// One call of a kernel: these queries see these keys.
struct Call {
  SlicePart queries, keys;
  Mask mask = Mask::None;
};

// Those of the slice's own keys. Of a run at `place` of the whole slice and at `held` of the rank's own.
std::vector<Call> own_calls(const ContextGroup& context, std::int64_t whole_tokens) {
  const ContextGroup::Runs runs = context.runs(whole_tokens);
  const std::int64_t length = runs.length;
  std::vector<Call> calls;
  const auto add = [&](std::int64_t place, std::int64_t held) {
    const SlicePart in_whole{.begin = place, .length = length}, own{.begin = held, .length = length};
    if (context.gathers_keys()) {
      calls.push_back({own, in_whole, Mask::Causal});
      if (place > 0) calls.push_back({own, {.begin = 0, .length = place}, Mask::None});
      return;
    }
    calls.push_back({in_whole, own, Mask::Causal});
    const std::int64_t after = place + length;
    if (after < whole_tokens)
      calls.push_back({{.begin = after, .length = whole_tokens - after}, own, Mask::None});
  };
  add(runs.first, 0);
  add(runs.second, length);
  return calls;
}

at::Tensor queries_of(const at::Tensor& x, const SlicePart& part) {
  return x.narrow(2, part.begin, part.length).contiguous();
}

std::int64_t whole_tokens(const ContextGroup& context, const LayerRecord& record) {
  return record[Saved::Query].size(2) * context.token_ranks();
}

// As many as see this rank's keys.
at::Tensor seeing(const ContextGroup& context, const at::Tensor& shared) {
  return context.gathers_keys() ? shared.contiguous() : context.to_whole(shared);
}

}  // namespace

std::vector<std::pair<LayerRecord*, SlicePart>> parts_at_home(EarlierSlices earlier,
                                                              const AttentionPartners* partners) {
  const int count = static_cast<int>(earlier.size()), away = partners ? partners->halves() : 0;
  std::vector<std::pair<LayerRecord*, SlicePart>> parts;
  for (int slice = count - 1; slice >= 0; --slice) {
    LayerRecord* record = earlier[count - 1 - slice];
    const SlicePart part =
        model::part_in_halves(slice, (*record)[Saved::Key].size(2), away, 2 * count - away);
    if (part.length > 0) parts.emplace_back(record, part);
  }
  return parts;
}

AttentionPart attend_in_context(const ContextGroup& context, EarlierSlices earlier, LayerRecord& record,
                                AttentionPartners* partners) {
  const at::Tensor query = seeing(context, record[Saved::Query]);
  if (partners) partners->post_queries(query);
  AttentionPart total = kernels::no_attention(query.sizes(), query.scalar_type());
  for (const Call& call : own_calls(context, whole_tokens(context, record))) {
    const KeyValues keys = keys_and_values(record, call.keys);
    kernels::merge_at(total, call.queries.begin,
                      kernels::attend(queries_of(query, call.queries), keys.key, keys.value, call.mask));
  }
  for (const auto& [slice, part] : parts_at_home(earlier, partners)) {
    const KeyValues keys = keys_and_values(*slice, part);
    kernels::merge(total, kernels::attend(query, keys.key, keys.value, Mask::None));
  }
  if (partners) partners->merge(total);
  return context.gathers_keys() ? total : context.merge_to_shared(total);
}

at::Tensor attend_in_context_backward(const ContextGroup& context, const at::Tensor& grad_output,
                                      const at::Tensor& dots, EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners) {
  const at::Tensor query = seeing(context, record[Saved::Query]), grad = seeing(context, grad_output);
  const AttentionPart merged{kernels::with_row_dots(grad, seeing(context, dots)),
                             seeing(context, record[Saved::LogSumExp].unsqueeze(3)).squeeze(3)};
  if (partners) partners->post_gradients(query, merged, grad);
  at::Tensor grad_query =
      at::zeros(query.sizes(), query.options().dtype(kernels::accumulator_type(query.scalar_type())));
  // Those of this slice that begin here live no longer than this action.
  const Category of_own = record.key_gradient.defined() ? Category::KvGradients : Category::Transient;
  const auto add = [&](LayerRecord& slice, const Call& call, Category category) {
    const KeyValues keys = keys_and_values(slice, call.keys);
    const AttentionPart part{queries_of(merged.output, call.queries),
                             queries_of(merged.log_sum_exp, call.queries)};
    const auto gradients =
        kernels::attend_backward(queries_of(grad, call.queries), queries_of(query, call.queries), keys.key,
                                 keys.value, part, call.mask);
    at::Tensor place = grad_query.narrow(2, call.queries.begin, call.queries.length);
    kernels::accumulate(place, gradients.query);
    add_gradients(slice, call.keys, {gradients.key, gradients.value}, category);
  };
  for (const Call& call : own_calls(context, whole_tokens(context, record))) add(record, call, of_own);
  const SlicePart all{.begin = 0, .length = query.size(2)};
  for (const auto& [slice, part] : parts_at_home(earlier, partners))
    add(*slice, {all, part, Mask::None}, Category::KvGradients);
  if (partners) partners->add_gradients(grad_query, earlier);
  if (!context.gathers_keys()) return context.sum_to_shared(grad_query);
  record.key_gradient = context.sum_to_shared(record.key_gradient);
  record.value_gradient = context.sum_to_shared(record.value_gradient);
  return grad_query;
}

}  // namespace penstock::nn
