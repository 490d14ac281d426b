// SPDX-License-Identifier: Apache-2.0
// Expert parallelism (docs/moe.md, "Expert ranks"; Lepikhin et al. 2021, section 3): each of e ranks has E/e
// consecutive experts, to which the other ranks send their tokens' rows. No row is dropped, and arrival times
// do not affect the order of rows, so a run repeats bit for bit.
//
// All ranks of the group make the same calls in the same order, each from one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "nn/groups/waits.h"

namespace penstock::nn {

// Row counts of one slice's exchange.
struct ExpertRoute {
  std::vector<std::int64_t> sent;                   // [rank] rows of this rank's tokens
  std::vector<std::vector<std::int64_t>> received;  // [rank][own expert]
  std::vector<std::int64_t> counts;                 // [own expert] rows from all ranks
};

// Rows in flight between ranks. Other work may run before the wait.
class RowsUnderWay {
 public:
  at::Tensor arrived();  // waits for the rows; call once

 private:
  friend class ExpertGroup;
  at::Tensor leaving_, arriving_;  // must outlive the requests
  std::vector<comm::Request> requests_;
  Waits* waits_ = nullptr;
};

class ExpertGroup {
 public:
  // A single rank has all experts: rows stay in place.
  ExpertGroup() = default;
  static const ExpertGroup& alone();
  // `ranks` must outlive the group.
  explicit ExpertGroup(comm::Communicator& ranks) : ranks_(&ranks) {}

  // `counts`: rows of this rank's tokens for each expert of all ranks. The ranks exchange their counts.
  RowsUnderWay begin_route(std::span<const std::int64_t> counts) const;
  ExpertRoute end_route(std::span<const std::int64_t> counts, RowsUnderWay others) const;

  // Dispatch sends the rows [R, ...] of this rank's tokens, by expert, and returns the route.counts rows of
  // its own experts: by expert, then by rank, then in that rank's order. Combine sends them back.
  RowsUnderWay begin_dispatch(const at::Tensor& rows, const ExpertRoute& route) const;
  at::Tensor end_dispatch(RowsUnderWay rows, const ExpertRoute& route) const;
  RowsUnderWay begin_combine(at::Tensor rows, const ExpertRoute& route) const;

  // This rank's sends and waits since the last call, and the bytes it has sent.
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
