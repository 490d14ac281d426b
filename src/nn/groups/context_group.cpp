// SPDX-License-Identifier: Apache-2.0
#include "nn/groups/context_group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/groups/waits.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/merge.h"

namespace penstock::nn {
namespace {

constexpr const char* kName = "the attention of a context group";
constexpr int kTokens = 2;  // dimension of tokens in [b, heads, tokens, d]

// A block of `tokens` tokens, as two runs.
TokenRuns halves(std::int64_t tokens) { return runs_of_rank(tokens, 1, 0); }

void copy_runs(const at::Tensor& from, const TokenRuns& source, const at::Tensor& to,
               const TokenRuns& target) {
  to.narrow(kTokens, target.first, target.length).copy_(from.narrow(kTokens, source.first, source.length));
  to.narrow(kTokens, target.second, target.length).copy_(from.narrow(kTokens, source.second, source.length));
}

at::Tensor sum_in_order(const at::Tensor& parts) {
  at::Tensor sum = parts.select(0, 0).clone();
  for (std::int64_t i = 1; i < parts.size(0); ++i) sum.add_(parts.select(0, i));
  return sum;
}

// The heads of one rank of c_h, out of `all`.
struct Heads {
  std::int64_t first = 0, count = 0;
};
Heads heads_of(std::int64_t all, std::int64_t ranks, std::int64_t rank) {
  return {rank * all / ranks, std::max<std::int64_t>(all / ranks, 1)};
}

}  // namespace

TokenRuns runs_of_rank(std::int64_t tokens, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t pieces = 2 * ranks, piece = tokens / pieces;
  return {rank * piece, (pieces - 1 - rank) * piece, piece};
}

const ContextGroup& ContextGroup::alone() {
  static const ContextGroup group;
  return group;
}

ContextGroup::ContextGroup(comm::Communicator& ranks, int heads, ContextMode mode) : mode_(mode) {
  PENSTOCK_CHECK(ranks.size() % heads == 0, "heads are shared by a divisor of the context ranks");
  if (heads > 1) heads_group_ = ranks.split(ranks.rank() / heads, ranks.rank());
  if (heads < ranks.size()) tokens_group_ = ranks.split(ranks.rank() % heads, ranks.rank());
}

Bytes ContextGroup::sent() const {
  return (heads_group_ ? heads_group_->bytes_sent() : 0) + (tokens_group_ ? tokens_group_->bytes_sent() : 0);
}

at::Tensor ContextGroup::exchanged(comm::Communicator& ranks, const at::Tensor& sent) const {
  at::Tensor received = at::empty(sent.sizes(), sent.options());
  timed_part(kName, waits_, [&] { ranks.all_to_all(bytes_of_tensor(sent), bytes_of_tensor(received)); });
  return received;
}

SlicePlace ContextGroup::place(std::int64_t sequences, std::int64_t tokens, std::int64_t first) const {
  if (ranks() == 1) return {sequences, tokens, first};
  PENSTOCK_CHECK(tokens % (2 * ranks()) == 0, "slices are cut at multiples of two pieces a context rank");
  const TokenRuns runs = runs_of_rank(tokens, ranks(), rank_in_group());
  return {sequences, 2 * runs.length, first + runs.first, first + runs.second};
}

std::int64_t ContextGroup::slice_begin(const SlicePlace& place) const {
  return place.in_two_runs() ? place.first_position - rank_in_group() * (place.tokens / 2)
                             : place.first_position;
}

std::vector<at::Tensor> ContextGroup::views_at(const SlicePlace& place, const at::Tensor& all) {
  if (!place.in_two_runs()) return {all.narrow(1, place.first_position, place.tokens)};
  const std::int64_t half = place.tokens / 2;
  return {all.narrow(1, place.first_position, half), all.narrow(1, place.second_position, half)};
}

at::Tensor row_of(const std::vector<at::Tensor>& views) {
  return (views.size() == 1 ? views.front() : at::cat(views, 1)).reshape(-1).contiguous();
}

at::Tensor ContextGroup::to_shared(const at::Tensor& own) const {
  if (!heads_group_) return own;
  const std::int64_t b = own.size(0), all = own.size(1), tokens = own.size(2), d = own.size(3);
  const std::int64_t ranks = heads_ranks(), count = heads_of(all, ranks, 0).count;
  at::Tensor sent = at::empty({ranks, b, count, tokens, d}, own.options());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    sent.select(0, rank).copy_(own.narrow(1, heads_of(all, ranks, rank).first, count));
  const at::Tensor received = exchanged(*heads_group_, sent);
  at::Tensor shared = at::empty({b, count, ranks * tokens, d}, own.options());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    copy_runs(received.select(0, rank), halves(tokens), shared, runs_of_rank(ranks * tokens, ranks, rank));
  return shared;
}

at::Tensor ContextGroup::to_own(const at::Tensor& shared, std::int64_t heads) const {
  if (!heads_group_) return shared;
  const std::int64_t b = shared.size(0), count = shared.size(1), d = shared.size(3);
  const std::int64_t ranks = heads_ranks(), tokens = shared.size(2) / ranks;
  at::Tensor sent = at::empty({ranks, b, count, tokens, d}, shared.options());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    copy_runs(shared, runs_of_rank(shared.size(2), ranks, rank), sent.select(0, rank), halves(tokens));
  const at::Tensor received = exchanged(*heads_group_, sent);
  at::Tensor own = at::empty({b, heads, tokens, d}, shared.options());
  for (std::int64_t rank = 0; rank < ranks;) {
    const Heads here = heads_of(heads, ranks, rank);
    at::Tensor sum = received.select(0, rank);
    // Ranks that share a key head have parts of its gradient, which are rounded once.
    for (++rank; rank < ranks && heads_of(heads, ranks, rank).first == here.first; ++rank)
      sum = sum.to(kernels::accumulator_type(sum.scalar_type())).add_(received.select(0, rank));
    own.narrow(1, here.first, here.count).copy_(sum);
  }
  return own;
}

at::Tensor ContextGroup::to_whole(const at::Tensor& shared) const {
  if (!tokens_group_) return shared;
  const std::int64_t ranks = token_ranks(), tokens = shared.size(2);
  const at::Tensor mine = shared.contiguous();
  std::vector<std::int64_t> sizes = mine.sizes().vec();
  sizes.insert(sizes.begin(), ranks);
  at::Tensor all = at::empty(sizes, mine.options());
  timed_part(kName, waits_, [&] { tokens_group_->all_gather(bytes_of_tensor(mine), bytes_of_tensor(all)); });
  sizes.erase(sizes.begin());
  sizes[kTokens] = ranks * tokens;
  at::Tensor whole = at::empty(sizes, mine.options());
  for (int rank = 0; rank < ranks; ++rank)
    copy_runs(all.select(0, rank), halves(tokens), whole, runs_of_rank(ranks * tokens, ranks, rank));
  return whole;
}

// Returns [rank, ...]: this rank's two runs of the whole tensor, from every rank.
at::Tensor ContextGroup::parts_of_whole(const at::Tensor& whole) const {
  const std::int64_t ranks = token_ranks();
  std::vector<std::int64_t> sizes = whole.sizes().vec();
  sizes[kTokens] /= ranks;
  const std::int64_t tokens = sizes[kTokens];
  sizes.insert(sizes.begin(), ranks);
  at::Tensor sent = at::empty(sizes, whole.options());
  for (int rank = 0; rank < ranks; ++rank)
    copy_runs(whole, runs_of_rank(whole.size(kTokens), ranks, rank), sent.select(0, rank), halves(tokens));
  return exchanged(*tokens_group_, sent);
}

at::Tensor ContextGroup::sum_to_shared(const at::Tensor& whole) const {
  return tokens_group_ ? sum_in_order(parts_of_whole(whole)) : whole;
}

kernels::AttentionPart ContextGroup::merge_to_shared(const kernels::AttentionPart& whole) const {
  if (!tokens_group_) return whole;
  const at::Tensor outputs = parts_of_whole(whole.output);
  const at::Tensor sums = parts_of_whole(whole.log_sum_exp.unsqueeze(3)).squeeze(4);
  kernels::AttentionPart merged = kernels::no_attention(outputs.select(0, 0).sizes(), outputs);
  for (std::int64_t rank = 0; rank < outputs.size(0); ++rank)
    kernels::merge(merged, {outputs.select(0, rank), sums.select(0, rank)});
  return merged;
}

}  // namespace penstock::nn
