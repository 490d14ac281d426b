// SPDX-License-Identifier: Apache-2.0
// Expert parallelism (docs/moe.md, "Expert ranks"; Lepikhin et al. 2021, section 3): each of e ranks has E/e
// neighbouring experts, to which the others send their tokens' rows. No row is dropped, and none is placed by
// its time of arrival, so a run repeats its bits.
//
// Calls are made by all ranks of the group in the same order, and by one thread of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "nn/groups/waits.h"

namespace penstock::nn {

// Where the rows of one slice go.
struct ExpertRoute {
  std::vector<std::int64_t> sent;                   // [rank] rows of this rank's tokens
  std::vector<std::vector<std::int64_t>> received;  // [rank][own expert]
  std::vector<std::int64_t> counts;                 // [own expert] rows from all ranks
};

// Rows on their way between ranks. Other work may be done before they are waited for.
class RowsUnderWay {
 public:
  at::Tensor arrived();  // waits for them; once

 private:
  friend class ExpertGroup;
  at::Tensor leaving_, arriving_;  // alive as long as the requests
  std::vector<comm::Request> requests_;
  Waits* waits_ = nullptr;
};

class ExpertGroup {
 public:
  // A rank alone has all experts: rows stay where they are.
  ExpertGroup() = default;
  static const ExpertGroup& alone();
  // `ranks` outlives the group.
  explicit ExpertGroup(comm::Communicator& ranks) : ranks_(&ranks) {}

  // From the rows of this rank's tokens for each of all experts. Ranks tell one another their counts.
  RowsUnderWay begin_route(std::span<const std::int64_t> counts) const;
  ExpertRoute end_route(std::span<const std::int64_t> counts, RowsUnderWay others) const;

  // Rows by expert [R, ...] of this rank's tokens, to the rows of its own experts, as many as route.counts:
  // by expert, of an expert by rank, of a rank in their order. And back.
  RowsUnderWay begin_dispatch(const at::Tensor& rows, const ExpertRoute& route) const;
  at::Tensor end_dispatch(RowsUnderWay rows, const ExpertRoute& route) const;
  RowsUnderWay begin_combine(at::Tensor rows, const ExpertRoute& route) const;

  // This rank's sends and waits since they were last taken, and bytes it has sent.
  Waits take_waits() { return std::exchange(waits_, {}); }
  Bytes sent() const { return ranks_ ? ranks_->bytes_sent() : 0; }

 private:
  // sent[r] rows go to rank r, received[r] come from it, in rank order.
  RowsUnderWay exchange(const at::Tensor& rows, std::span<const std::int64_t> sent,
                        std::span<const std::int64_t> received) const;

  static RowsUnderWay staying(const at::Tensor& rows);

  comm::Communicator* ranks_ = nullptr;
  mutable Waits waits_;
};

}  // namespace penstock::nn
