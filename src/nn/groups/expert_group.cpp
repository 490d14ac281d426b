// SPDX-License-Identifier: Apache-2.0
#include "nn/groups/expert_group.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/groups/waits.h"
#include "nn/kernels/profile.h"

namespace penstock::nn {
namespace {

constexpr int kChannel = 64;  // another group, with lower channels, may use the communicator too

std::vector<std::int64_t> sums_of(const std::vector<std::vector<std::int64_t>>& rows) {
  std::vector<std::int64_t> sums;
  for (const auto& row : rows) sums.push_back(std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  return sums;
}

// An uninitialised tensor of `rows` rows like those of another.
at::Tensor room_for(std::int64_t rows, const at::Tensor& like) {
  std::vector<std::int64_t> sizes = like.sizes().vec();
  sizes.front() = rows;
  return at::empty(sizes, like.options());
}

// Calls copy(arrived, ordered, count) for the rows of each (rank, expert): their first row in order of
// arrival and in order of experts.
template <class Copy>
void for_segments(const ExpertRoute& route, Copy&& copy) {
  std::int64_t ordered = 0;
  for (std::size_t expert = 0; expert < route.counts.size(); ++expert) {
    std::int64_t of_rank = 0;  // the first row from the rank
    for (const std::vector<std::int64_t>& counts : route.received) {
      const auto own = counts.begin() + static_cast<std::ptrdiff_t>(expert);
      if (*own > 0) copy(std::accumulate(counts.begin(), own, of_rank), ordered, *own);
      ordered += *own;
      of_rank = std::accumulate(counts.begin(), counts.end(), of_rank);
    }
  }
}

KernelTimer::Work moved(const at::Tensor& rows) {
  return {.bytes = 2.0 * static_cast<double>(rows.nbytes())};
}

}  // namespace

const ExpertGroup& ExpertGroup::alone() {
  static const ExpertGroup group;
  return group;
}

at::Tensor RowsUnderWay::arrived() {
  if (!requests_.empty())
    timed_part("the rows of an expert group", *waits_, [&] { comm::wait_all(requests_); });
  requests_.clear();
  leaving_.reset();
  return std::move(arriving_);
}

RowsUnderWay ExpertGroup::exchange(const at::Tensor& rows, std::span<const std::int64_t> sent,
                                   std::span<const std::int64_t> received) const {
  PENSTOCK_CHECK(rows.is_contiguous(), "rows are sent as they lie");
  RowsUnderWay way;
  way.leaving_ = rows;
  way.arriving_ = room_for(std::accumulate(received.begin(), received.end(), std::int64_t{0}), rows);
  way.waits_ = &waits_;
  const auto begin = [](std::span<const std::int64_t> counts, int rank) {
    return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
  };
  const int e = ranks_->size(), mine = ranks_->rank();
  timed_part("the rows of an expert group", waits_, [&] {
    for (int step = 1; step < e; ++step) {
      const int from = (mine + e - step) % e, to = (mine + step) % e;
      const at::Tensor theirs = way.arriving_.narrow(0, begin(received, from), received[from]);
      const at::Tensor ours = rows.narrow(0, begin(sent, to), sent[to]);
      if (received[from] > 0)
        way.requests_.push_back(ranks_->receive(bytes_of_tensor(theirs), from, kChannel));
      if (sent[to] > 0) way.requests_.push_back(ranks_->send(bytes_of_tensor(ours), to, kChannel));
    }
    way.arriving_.narrow(0, begin(received, mine), received[mine])
        .copy_(rows.narrow(0, begin(sent, mine), sent[mine]));
  });
  return way;
}

RowsUnderWay ExpertGroup::begin_route(std::span<const std::int64_t> counts) const {
  if (!ranks_) return {};
  const auto e = static_cast<std::size_t>(ranks_->size());
  PENSTOCK_CHECK(counts.size() % e == 0, "every rank has as many experts");
  at::Tensor told = at::empty({static_cast<std::int64_t>(counts.size())}, at::kLong);
  std::ranges::copy(counts, told.mutable_data_ptr<std::int64_t>());
  const std::vector<std::int64_t> each(e, static_cast<std::int64_t>(counts.size() / e));
  return exchange(told, each, each);
}

ExpertRoute ExpertGroup::end_route(std::span<const std::int64_t> counts, RowsUnderWay others) const {
  ExpertRoute route;
  if (!ranks_) {
    route.counts.assign(counts.begin(), counts.end());
    return route;
  }
  const at::Tensor told = others.arrived();
  const std::span all(told.const_data_ptr<std::int64_t>(), counts.size());
  const auto e = static_cast<std::size_t>(ranks_->size());
  const std::size_t own = counts.size() / e;
  route.counts.resize(own);
  for (std::size_t rank = 0; rank < e; ++rank) {
    const auto here = counts.subspan(rank * own, own), there = all.subspan(rank * own, own);
    route.sent.push_back(std::accumulate(here.begin(), here.end(), std::int64_t{0}));
    route.received.emplace_back(there.begin(), there.end());
    for (std::size_t expert = 0; expert < own; ++expert) route.counts[expert] += there[expert];
  }
  return route;
}

RowsUnderWay ExpertGroup::begin_dispatch(const at::Tensor& rows, const ExpertRoute& route) const {
  if (ranks_) return exchange(rows, route.sent, sums_of(route.received));
  return staying(rows);
}

at::Tensor ExpertGroup::end_dispatch(RowsUnderWay rows, const ExpertRoute& route) const {
  at::Tensor arrived = rows.arrived();
  if (!ranks_) return arrived;
  const KernelTimer timer(Kernel::Dispatch, moved(arrived));
  at::Tensor ordered = room_for(arrived.size(0), arrived);
  for_segments(route, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    ordered.narrow(0, to, count).copy_(arrived.narrow(0, from, count));
  });
  return ordered;
}

RowsUnderWay ExpertGroup::begin_combine(at::Tensor rows, const ExpertRoute& route) const {
  if (!ranks_) return staying(rows);
  at::Tensor leaving = room_for(rows.size(0), rows);
  {
    const KernelTimer timer(Kernel::Combine, moved(rows));
    for_segments(route, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      leaving.narrow(0, to, count).copy_(rows.narrow(0, from, count));
    });
  }
  rows.reset();  // before the exchange allocates
  return exchange(leaving, sums_of(route.received), route.sent);
}

RowsUnderWay ExpertGroup::staying(const at::Tensor& rows) {
  RowsUnderWay way;
  way.arriving_ = rows;
  return way;
}

}  // namespace penstock::nn
