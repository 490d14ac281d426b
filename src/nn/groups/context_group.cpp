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

// Two equally long runs of a tensor's tokens.
struct TwoRuns {
  std::int64_t first = 0, second = 0, length = 0;

  at::Tensor first_of(const at::Tensor& x) const { return x.narrow(kTokens, first, length); }
  at::Tensor second_of(const at::Tensor& x) const { return x.narrow(kTokens, second, length); }
};

// A block of `tokens` tokens, as two runs.
TwoRuns halves(std::int64_t tokens) { return {0, tokens / 2, tokens / 2}; }

void copy_runs(const at::Tensor& from, const TwoRuns& source, const at::Tensor& to, const TwoRuns& target) {
  target.first_of(to).copy_(source.first_of(from));
  target.second_of(to).copy_(source.second_of(from));
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

// The pieces of one rank of c_h in the shared frame, within the group's two runs.
TwoRuns pieces_of(std::int64_t shared_tokens, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t piece = shared_tokens / (2 * ranks);
  return {rank * piece, shared_tokens / 2 + (ranks - 1 - rank) * piece, piece};
}

}  // namespace

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
  const std::int64_t rank = rank_in_group();
  const std::int64_t pieces = 2 * ranks(), piece = tokens / pieces;
  PENSTOCK_CHECK(tokens % pieces == 0, "slices are cut at multiples of two pieces a context rank");
  return {sequences, 2 * piece, first + rank * piece, first + (pieces - 1 - rank) * piece};
}

std::int64_t ContextGroup::slice_begin(const SlicePlace& place) const {
  return place.in_two_runs() ? place.first_position - rank_in_group() * (place.tokens / 2)
                             : place.first_position;
}

at::Tensor ContextGroup::tokens_at(const SlicePlace& place, const at::Tensor& all) {
  if (!place.in_two_runs()) return all.narrow(1, place.first_position, place.tokens);
  const std::int64_t half = place.tokens / 2;
  return at::cat({all.narrow(1, place.first_position, half), all.narrow(1, place.second_position, half)}, 1);
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
    copy_runs(received.select(0, rank), halves(tokens), shared, pieces_of(ranks * tokens, ranks, rank));
  return shared;
}

at::Tensor ContextGroup::to_own(const at::Tensor& shared, std::int64_t heads) const {
  if (!heads_group_) return shared;
  const std::int64_t b = shared.size(0), count = shared.size(1), d = shared.size(3);
  const std::int64_t ranks = heads_ranks(), tokens = shared.size(2) / ranks;
  at::Tensor sent = at::empty({ranks, b, count, tokens, d}, shared.options());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    copy_runs(shared, pieces_of(shared.size(2), ranks, rank), sent.select(0, rank), halves(tokens));
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

ContextGroup::Runs ContextGroup::runs_of(std::int64_t whole_tokens, int token_rank) const {
  const std::int64_t all = 2 * token_ranks(), length = whole_tokens / all;
  return {token_rank * length, (all - 1 - token_rank) * length, length};
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
  for (int rank = 0; rank < ranks; ++rank) {
    const Runs here = runs_of(ranks * tokens, rank);
    copy_runs(all.select(0, rank), halves(tokens), whole, {here.first, here.second, here.length});
  }
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
  for (int rank = 0; rank < ranks; ++rank) {
    const Runs there = runs_of(whole.size(kTokens), rank);
    copy_runs(whole, {there.first, there.second, there.length}, sent.select(0, rank), halves(tokens));
  }
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
