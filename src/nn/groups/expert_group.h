// SPDX-License-Identifier: Apache-2.0
// Expert parallelism (mesh.md §5; Lepikhin et al. 2021, section 3): each of e ranks has E/e neighbouring
// experts, to which the others send their tokens' rows. No row is dropped, and none is placed by its time of
// arrival, so a run repeats its bits.
//
// Calls are made by all ranks of the group in the same order, and by one thread of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace penstock::nn {

// Where the rows of one slice go.
struct ExpertRoute {
  std::vector<std::int64_t> sent;                   // [rank] rows of this rank's tokens
  std::vector<std::vector<std::int64_t>> received;  // [rank][own expert]
  std::vector<std::int64_t> counts;                 // [own expert] rows from all ranks
};

class ExpertGroup {
 public:
  // A rank alone has all experts: rows stay where they are.
  ExpertGroup() = default;
  static const ExpertGroup& alone();
  // `ranks` outlives the group.
  explicit ExpertGroup(comm::Communicator& ranks) : ranks_(&ranks) {}

  // From the rows of this rank's tokens for each of all experts. Ranks tell one another their counts.
  ExpertRoute route(std::span<const std::int64_t> counts) const;

  // Rows by expert [R, ...] of this rank's tokens, to the rows of its own experts, as many as route.counts:
  // by expert, of an expert by rank, of a rank in their order. And back.
  at::Tensor dispatch(const at::Tensor& rows, const ExpertRoute& route) const;
  at::Tensor combine(const at::Tensor& rows, const ExpertRoute& route) const;

  // Seconds that this rank has spent exchanging, and bytes it has sent.
  Seconds waited() const { return waited_; }
  Bytes sent() const { return ranks_ ? ranks_->bytes_sent() : 0; }

 private:
  // sent[r] rows go to rank r, received[r] come from it, in rank order.
  at::Tensor exchanged(const at::Tensor& rows, std::span<const std::int64_t> sent,
                       std::span<const std::int64_t> received) const;

  comm::Communicator* ranks_ = nullptr;
  mutable Seconds waited_ = 0;
};

}  // namespace penstock::nn
