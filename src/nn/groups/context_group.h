// SPDX-License-Identifier: Apache-2.0
// Context parallelism (docs/mesh.md, "Context ranks"): the c ranks of a context group split the tokens of
// every slice.
//
// A slice is cut into 2c equal pieces; rank i has pieces i and 2c−1−i (zigzag), so the causal diagonal costs
// every rank the same. Attention uses three frames, with c = c_h · c_q and rank = q·c_h + h:
// - own: all heads for the rank's own two pieces;
// - shared: 1/c_h of the heads for the two runs of pieces of the c_h ranks with the same q (an all-to-all of
//   heads and tokens, as in Ulysses; Jacobs et al. 2023). Records keep queries, keys and values in this
//   frame. The ranks with the same h form a zigzag of c_q ranks;
// - whole: these heads for all tokens of the slice, in order.
// Mode Query makes the queries whole; they attend to each rank's keys, and the partial results are merged
// (SlimPipe's commutated context parallelism). Mode Gather makes keys and values whole and keeps them whole.
// c_q = 1 is "heads", c_h = 1 "query" or "gather", and both above 1 "mixed".
//
// All ranks of the group make the same calls in the same order. Tensors are [b, heads, tokens, d] with d
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

// Two equally long runs of tokens.
struct TokenRuns {
  std::int64_t first = 0, second = 0, length = 0;
};

// What rank `rank` has of `tokens` tokens: of 2·ranks equal pieces that piece, and its mirror image.
TokenRuns runs_of_rank(std::int64_t tokens, std::int64_t ranks, std::int64_t rank);

class ContextGroup {
 public:
  // A single rank: the three frames are the same.
  ContextGroup() = default;
  static const ContextGroup& alone();
  // `heads` = c_h divides the number of ranks. Splits both groups off `ranks`; collective.
  ContextGroup(comm::Communicator& ranks, int heads, ContextMode mode);

  int ranks() const { return heads_ranks() * token_ranks(); }                    // c
  int heads_ranks() const { return heads_group_ ? heads_group_->size() : 1; }    // c_h
  int token_ranks() const { return tokens_group_ ? tokens_group_->size() : 1; }  // c_q
  bool gathers_keys() const { return token_ranks() > 1 && mode_ == ContextMode::Gather; }

  // This rank's place in the slice that begins at `first` with `tokens` tokens of each sequence, and views of
  // the place's runs of tokens in a tensor [b, s].
  SlicePlace place(std::int64_t sequences, std::int64_t tokens, std::int64_t first) const;
  std::int64_t slice_begin(const SlicePlace& place) const;  // the slice's first position
  static std::vector<at::Tensor> views_at(const SlicePlace& place, const at::Tensor& all);

  // Own frame to shared and back, for `heads` heads in all. The shared frame has 1/c_h of them, or one that
  // several ranks share if there are fewer heads than ranks; to_own() adds the ranks' parts of a shared head
  // in rank order.
  at::Tensor to_shared(const at::Tensor& own) const;
  at::Tensor to_own(const at::Tensor& shared, std::int64_t heads) const;

  // Shared frame to whole. Back: the sum of all ranks' whole tensors, in rank order.
  at::Tensor to_whole(const at::Tensor& shared) const;
  at::Tensor sum_to_shared(const at::Tensor& whole) const;

  // Merges all ranks' attention of the whole queries to their own keys; returns the shared queries' part.
  kernels::AttentionPart merge_to_shared(const kernels::AttentionPart& whole) const;

  // This rank's exchanges of heads, queries, keys and results since the last call, and the bytes it has sent.
  Waits take_waits() { return std::exchange(waits_, {}); }
  Bytes sent() const;

  // The shared frame's runs of a whole slice.
  TokenRuns runs(std::int64_t whole_tokens) const {
    return runs_of_rank(whole_tokens, token_ranks(), token_rank());
  }

 private:
  int heads_rank() const { return heads_group_ ? heads_group_->rank() : 0; }
  int token_rank() const { return tokens_group_ ? tokens_group_->rank() : 0; }
  std::int64_t rank_in_group() const { return std::int64_t{token_rank()} * heads_ranks() + heads_rank(); }
  at::Tensor parts_of_whole(const at::Tensor& whole) const;
  at::Tensor exchanged(comm::Communicator& ranks, const at::Tensor& sent) const;

  std::shared_ptr<comm::Communicator> heads_group_, tokens_group_;  // null: a single rank
  ContextMode mode_ = ContextMode::Query;
  mutable Waits waits_;
};

// The numbers in views [b, T_i] of a place's runs, as one row [b·T].
at::Tensor row_of(const std::vector<at::Tensor>& views);

}  // namespace penstock::nn
