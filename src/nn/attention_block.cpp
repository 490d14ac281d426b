// SPDX-License-Identifier: Apache-2.0
#include "nn/attention_block.h"

#include <utility>
#include <vector>

#include "backend/device.h"
#include "nn/context_attention.h"
#include "nn/joined_keys.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/attention.h"
#include "nn/kernels/merge.h"
#include "nn/kernels/rms_norm.h"
#include "nn/kernels/row_dots.h"

namespace penstock::nn {
namespace {

using kernels::AttentionPart;
using kernels::Mask;

// [N, heads·d] as [b, heads, T, d], and back to rows of `type`.
at::Tensor by_head(const at::Tensor& rows, const SlicePlace& place, std::int64_t heads) {
  return rows.view({place.sequences, place.tokens, heads, rows.size(1) / heads}).transpose(1, 2);
}
at::Tensor by_token(const at::Tensor& x, at::ScalarType type) {
  return x.transpose(1, 2).to(type).contiguous().view({x.size(0) * x.size(2), x.size(1) * x.size(3)});
}

kernels::Positions positions_of(const SlicePlace& place) {
  kernels::Positions positions =
      place.in_two_runs() ? kernels::Positions(place.first_position, place.second_position, place.tokens)
                          : kernels::Positions(place.first_position);
  if (place.documents.restart_positions)
    positions.starts = place.documents.device_starts.defined() ? place.documents.device_starts
                                                               : backend::to_device(place.documents.starts);
  return positions;
}

at::Tensor rotated(const AttentionBlock& block, const SlicePlace& place, std::int64_t heads,
                   const at::Tensor& rows) {
  return kernels::rope(rows.view({place.sequences, place.tokens, rows.size(1)}), *block.rotary, heads,
                       positions_of(place));
}

// All queries of a slice, and which keys they see.
struct AllQueries {
  const Documents& documents;
  TokenRun run;
  at::ScalarType type;

  AllQueries(const AttentionBlock& block, const SlicePlace& place, const LayerRecord& record)
      : documents(place.documents),
        run{block.context->slice_begin(place), record[Saved::Query].size(2)},
        type(record[Saved::Query].scalar_type()) {}

  // Groups the parts into calls. With documents each part has its own call: visibility depends on the part's
  // position.
  std::vector<EarlierParts> calls(EarlierParts parts) const {
    return joined_parts(parts, documents.defined() ? 0 : kernels::keys_at_once(type, run.count));
  }
  // Which of a call's keys the queries see.
  std::optional<kernels::Visible> visible(EarlierParts call) const {
    return documents.visible(Mask::None, run, call.front().keys());
  }
  kernels::Visible visible_of_own() const { return *documents.visible(Mask::Causal, run, run); }
};

// Keys or values in the form that records hold.
at::Tensor to_cache(const ContextGroup& context, const at::Tensor& own) {
  const at::Tensor shared = context.to_shared(own);
  return context.gathers_keys() ? context.to_whole(shared) : shared;
}

AttentionPart attend_all(const AllQueries& queries, const LayerRecord& record, EarlierSlices earlier,
                         AttentionPartners* partners) {
  const at::Tensor& query = record[Saved::Query];
  AttentionPart total =
      kernels::attend(query, record[Saved::Key], record[Saved::Value], queries.visible_of_own());
  if (earlier.empty()) return total;
  total.output = kernels::in_accumulator_type(total.output);
  const std::vector<EarlierPart> parts = parts_at_home(earlier, partners, queries.run.first);
  for (const EarlierParts call : queries.calls(parts)) {
    const auto visible = queries.visible(call);
    if (!visible) continue;
    const KeyValues keys = keys_and_values(call);
    kernels::merge(total, kernels::attend(query, keys.key, keys.value, *visible));
  }
  if (partners) partners->merge(total);
  return total;
}

// Returns the gradient of the rotated query [b, H, T, d]; adds those of keys and values to the records.
at::Tensor attend_all_backward(const AllQueries& queries, const AttentionPart& merged,
                               const at::Tensor& grad_output, EarlierSlices earlier, LayerRecord& record,
                               AttentionPartners* partners) {
  const at::Tensor& query = record[Saved::Query];
  const auto own_part = [&] {
    const auto own = kernels::attend_backward(grad_output, query, record[Saved::Key], record[Saved::Value],
                                              merged, queries.visible_of_own());
    kernels::accumulate_or_take(record.key_gradient, own.key);
    kernels::accumulate_or_take(record.value_gradient, own.value);
    return own.query;
  };
  at::Tensor grad_query = own_part();
  if (earlier.empty()) return grad_query;
  grad_query = kernels::in_accumulator_type(grad_query);
  const auto earlier_part = [&](EarlierParts call, const kernels::Visible& visible) {
    const KeyValues keys = keys_and_values(call);
    const auto gradients =
        kernels::attend_backward(grad_output, query, keys.key, keys.value, merged, visible);
    add_gradients(call, {gradients.key, gradients.value});
    return gradients.query;
  };
  const std::vector<EarlierPart> parts = parts_at_home(earlier, partners, queries.run.first);
  for (const EarlierParts call : queries.calls(parts)) {
    if (const auto visible = queries.visible(call))
      kernels::accumulate(grad_query, earlier_part(call, *visible));
  }
  if (partners) partners->add_gradients(grad_query, earlier);
  return grad_query;
}

// Rows [N, heads·d] as [N·heads, d].
at::Tensor one_head_a_row(const at::Tensor& rows, const Parameter& norm) {
  return rows.view({-1, norm.sizes[0]});
}

// Applies the heads' norm, if any, and sets `input` and `scale` for its backward.
at::Tensor normed_heads(const Parameter* norm, double epsilon, const at::Tensor& rows, at::Tensor& input,
                        at::Tensor& scale) {
  if (!norm) return rows;
  auto normed = kernels::rms_norm(one_head_a_row(rows, *norm), norm->weight, epsilon);
  input = rows;
  scale = std::move(normed.scale);
  return normed.output.view(rows.sizes());
}

// Returns the gradient of the rows from that of their normed heads.
at::Tensor normed_heads_backward(Parameter* norm, const at::Tensor& gradient, const at::Tensor& input,
                                 const at::Tensor& scale) {
  if (!norm) return gradient;
  return kernels::rms_norm_backward(one_head_a_row(gradient, *norm), one_head_a_row(input, *norm),
                                    norm->weight, scale, {}, norm->gradient)
      .view(gradient.sizes());
}

}  // namespace

void set_query(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record) {
  const at::Tensor normed = normed_heads(block.query_norm, block.norm_epsilon, rows,
                                         record[Saved::QueryInput], record[Saved::QueryScale]);
  record[Saved::Query] = block.context->to_shared(rotated(block, place, block.heads, normed));
}

void set_key(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
             LayerRecord& record) {
  const at::Tensor normed = normed_heads(block.key_norm, block.norm_epsilon, rows, record[Saved::KeyInput],
                                         record[Saved::KeyScale]);
  if (record[Saved::Key].defined()) return;
  record[Saved::Key] = to_cache(*block.context, rotated(block, place, block.kv_heads, normed));
}

bool lacks_key(const AttentionBlock& block, const LayerRecord& record) {
  return !record[Saved::Key].defined() || (block.key_norm && !record[Saved::KeyInput].defined());
}

void set_value(const AttentionBlock& block, const SlicePlace& place, const at::Tensor& rows,
               LayerRecord& record) {
  record[Saved::Value] = to_cache(*block.context, by_head(rows, place, block.kv_heads));
}

void post_queries(const AttentionBlock& block, const LayerRecord& record, AttentionPartners* partners) {
  if (partners && block.context->token_ranks() == 1) partners->post_queries(record[Saved::Query]);
}

void attend(const AttentionBlock& block, const SlicePlace& place, EarlierSlices earlier, LayerRecord& record,
            AttentionPartners* partners) {
  const ContextGroup& context = *block.context;
  const at::ScalarType type = record[Saved::Query].scalar_type();
  const bool alone = context.token_ranks() == 1;
  const AttentionPart merged = alone ? attend_all(AllQueries(block, place, record), record, earlier, partners)
                                     : attend_in_context(context, place, earlier, record, partners);
  record[Saved::LogSumExp] = merged.log_sum_exp;
  if (context.ranks() == 1) {
    record[Saved::AttentionOutput] = by_token(merged.output, type);
  } else {
    record[Saved::AttentionOutput] = by_token(context.to_own(merged.output.to(type), block.heads), type);
  }
}

namespace {

// Computes the gradients of the rotated queries and, in the record, of keys and values.
void backward_alone(AttentionGradients& grad, const AttentionBlock& block, const SlicePlace& place,
                    EarlierSlices earlier, LayerRecord& record, AttentionPartners* partners) {
  grad.merged = {by_head(record[Saved::AttentionOutput], place, block.heads), record[Saved::LogSumExp]};
  grad.by_head = by_head(grad.output, place, block.heads);
  if (block.heads != block.kv_heads && !earlier.empty() && backend::compute_device().is_cpu()) {
    // On the CPU every earlier chunk folds the head groups of these two tensors: one copy here instead of one
    // per chunk.
    grad.merged.output = grad.merged.output.contiguous();
    grad.by_head = grad.by_head.contiguous();
  }
  if (partners) partners->post_gradients(record[Saved::Query], grad.merged, grad.by_head);
  grad.rotated_query = attend_all_backward(AllQueries(block, place, record), grad.merged, grad.by_head,
                                           earlier, record, partners);
}

// The same in a context group, whose ranks exchange the row sums δ instead of the output.
void backward_in_context(AttentionGradients& grad, const AttentionBlock& block, const SlicePlace& place,
                         EarlierSlices earlier, LayerRecord& record, AttentionPartners* partners) {
  const ContextGroup& context = *block.context;
  const at::ScalarType type = grad.output.scalar_type();
  const at::Tensor own = by_head(grad.output, place, block.heads);
  const at::Tensor dots =
      context.to_shared(kernels::row_dots(own, by_head(record[Saved::AttentionOutput], place, block.heads)));
  grad.by_head = context.to_shared(own);
  if (context.token_ranks() > 1) {
    grad.rotated_query =
        attend_in_context_backward(context, place, grad.by_head, dots, earlier, record, partners);
  } else {
    grad.merged = {kernels::with_row_dots(grad.by_head, dots), record[Saved::LogSumExp]};
    if (partners) partners->post_gradients(record[Saved::Query], grad.merged, grad.by_head);
    grad.rotated_query = attend_all_backward(AllQueries(block, place, record), grad.merged, grad.by_head,
                                             earlier, record, partners);
  }
  if (context.heads_ranks() == 1) return;
  grad.rotated_query = context.to_own(grad.rotated_query.to(type), block.heads);
  record.key_gradient = context.to_own(record.key_gradient.to(type), block.kv_heads);
  record.value_gradient = context.to_own(record.value_gradient.to(type), block.kv_heads);
}

}  // namespace

AttentionGradients attention_backward(const AttentionBlock& block, const SlicePlace& place,
                                      at::Tensor grad_output, EarlierSlices earlier, LayerRecord& record,
                                      AttentionPartners* partners) {
  const at::ScalarType type = grad_output.scalar_type();
  AttentionGradients grad{.output = std::move(grad_output)};
  const auto backward = block.context->ranks() == 1 ? backward_alone : backward_in_context;
  backward(grad, block, place, earlier, record, partners);
  const auto turned_back = [&](const at::Tensor& gradient) {
    return kernels::rope_backward(gradient, *block.rotary, positions_of(place), type);
  };
  grad.query = normed_heads_backward(block.query_norm, turned_back(grad.rotated_query),
                                     record[Saved::QueryInput], record[Saved::QueryScale]);
  grad.key = normed_heads_backward(block.key_norm, turned_back(record.key_gradient), record[Saved::KeyInput],
                                   record[Saved::KeyScale]);
  grad.value = by_token(record.value_gradient, type);
  return grad;
}

}  // namespace penstock::nn
