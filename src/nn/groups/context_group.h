// SPDX-License-Identifier: Apache-2.0
// Context parallelism (docs/mesh.md, "Context ranks"): the c ranks of a context group share out the tokens of
// every slice.
//
// A slice is cut into 2c equal pieces of which rank i has i and 2c−1−i (zigzag), so the causal diagonal costs
// every rank the same. Attention is formed in three frames, c = c_h · c_q, rank = q·c_h + h:
// - own: all heads for the rank's own two pieces;
// - shared: 1/c_h of the heads for the two runs of pieces of the c_h ranks with the same q (an all-to-all of
//   heads and tokens, as in Ulysses; Jacobs et al. 2023). Queries, keys and values are kept so. The ranks
//   with the same h hold them as a zigzag of c_q ranks;
// - whole: these heads for all tokens of the slice, in their order.
// In mode Query the queries are made whole and attend to the keys of each rank; its partial results are
// merged (SlimPipe's commutated context parallelism). In mode Gather keys and values are made whole and stay
// so. c_q = 1 is "heads", c_h = 1 "query" or "gather", and both above 1 "mixed".
//
// Calls are made by all ranks of the group in the same order. Tensors are [b, heads, tokens, d] with d
// contiguous. b = sequences of a micro-batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

#include "comm/communicator.h"
#include "nn/groups/slice_place.h"
#include "nn/groups/waits.h"
#include "nn/kernels/attention.h"

namespace penstock::nn {

enum class ContextMode : std::uint8_t { Query, Gather };  // among the ranks with the same heads

class ContextGroup {
 public:
  // A rank alone: the three frames are one.
  ContextGroup() = default;
  static const ContextGroup& alone();
  // `heads` = c_h divides the ranks. Both groups are split off `ranks`; collective.
  ContextGroup(comm::Communicator& ranks, int heads, ContextMode mode);

  int ranks() const { return heads_ranks() * token_ranks(); }                    // c
  int heads_ranks() const { return heads_group_ ? heads_group_->size() : 1; }    // c_h
  int token_ranks() const { return tokens_group_ ? tokens_group_->size() : 1; }  // c_q
  bool gathers_keys() const { return token_ranks() > 1 && mode_ == ContextMode::Gather; }

  // Of the slice that begins at `first` and has `tokens` of each sequence: this rank's place, and its tokens
  // among a tensor's [b, s].
  SlicePlace place(std::int64_t sequences, std::int64_t tokens, std::int64_t first) const;
  std::int64_t slice_begin(const SlicePlace& place) const;  // the slice's first position
  static at::Tensor tokens_at(const SlicePlace& place, const at::Tensor& all);

  // Own frame to shared: of `heads` heads in all 1/c_h, or one that serves several ranks where there are
  // fewer. Back: parts of a head that several ranks have are added in rank order.
  at::Tensor to_shared(const at::Tensor& own) const;
  at::Tensor to_own(const at::Tensor& shared, std::int64_t heads) const;

  // Shared frame to whole; back, the sum of every rank's whole tensor, in rank order.
  at::Tensor to_whole(const at::Tensor& shared) const;
  at::Tensor sum_to_shared(const at::Tensor& whole) const;

  // Merges every rank's attention of the whole queries to its own keys, for the shared queries.
  kernels::AttentionPart merge_to_shared(const kernels::AttentionPart& whole) const;

  // This rank's exchanges of heads, queries, keys and results since they were last taken, and bytes sent.
  Waits take_waits() { return std::exchange(waits_, {}); }
  Bytes sent() const;

  // The shared frame's two runs of a whole slice: rank q of c_q has the q-th of 2·c_q and its mirror image.
  struct Runs {
    std::int64_t first = 0, second = 0, length = 0;
  };
  Runs runs(std::int64_t whole_tokens) const { return runs_of(whole_tokens, token_rank()); }

 private:
  int heads_rank() const { return heads_group_ ? heads_group_->rank() : 0; }
  int token_rank() const { return tokens_group_ ? tokens_group_->rank() : 0; }
  std::int64_t rank_in_group() const { return std::int64_t{token_rank()} * heads_ranks() + heads_rank(); }
  Runs runs_of(std::int64_t whole_tokens, int token_rank) const;
  at::Tensor parts_of_whole(const at::Tensor& whole) const;
  at::Tensor exchanged(comm::Communicator& ranks, const at::Tensor& sent) const;

  std::shared_ptr<comm::Communicator> heads_group_, tokens_group_;  // null: a rank alone
  ContextMode mode_ = ContextMode::Query;
  mutable Waits waits_;
};

}  // namespace penstock::nn
