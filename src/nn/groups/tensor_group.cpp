// SPDX-License-Identifier: Apache-2.0
#include "nn/groups/tensor_group.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <exception>
#include <string>
#include <utility>

#include "backend/device.h"
#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/kernels/element_dispatch.h"
#include "nn/kernels/matmul.h"
#include "nn/kernels/sum_parts.h"

namespace penstock::nn {
namespace {

const std::string& name_of(TensorGroup::Collective collective) {
  static const std::string gather = "the gather of a tensor group's rows";
  static const std::string scatter = "the scatter of a tensor group's sums";
  return collective == TensorGroup::Collective::Gather ? gather : scatter;
}

}  // namespace

TensorGroup::TensorGroup(comm::Communicator& ranks, int shards, bool overlap)
    : ranks_(&ranks), shards_(shards), overlap_(overlap) {
  PENSTOCK_CHECK(shards % ranks.size() == 0, "every rank carries as many shards");
}

at::Tensor narrowed_to(const at::Tensor& rows, const mesh::Shard& block) {
  return rows.narrow(0, block.begin, block.count);
}

mesh::Shard TensorGroup::rows_of_shard(std::int64_t tokens, int shard) const {
  return mesh::even_block(tokens, shards_, shard);
}

mesh::Shard TensorGroup::rows_of_rank(std::int64_t tokens, int rank) const {
  mesh::Shard rows = rows_of_shard(tokens, rank * own());
  const mesh::Shard last = rows_of_shard(tokens, (rank + 1) * own() - 1);
  rows.count = rows.held = last.begin + last.count - rows.begin;
  return rows;
}

Rows TensorGroup::split(const at::Tensor& rows, std::int64_t tokens) const {
  if (own() == 1) return {rows};
  const std::int64_t first = rows_of_rank(tokens, rank()).begin;
  Rows blocks;
  for (int i = 0; i < own(); ++i) {
    mesh::Shard block = rows_of_shard(tokens, shard_of(i));
    block.begin -= first;
    blocks.push_back(narrowed_to(rows, block));
  }
  return blocks;
}

at::Tensor TensorGroup::join(const Rows& blocks) const {
  return blocks.size() == 1 ? blocks.front() : at::cat(blocks);
}

void TensorGroup::send(std::vector<Sent>& sent, const at::Tensor& buffer, int to, Collective collective) {
  comm::as_part_of(name_of(collective), [&] {
    sent.push_back({buffer, ranks_->send(bytes_of_tensor(buffer), to, static_cast<int>(collective))});
  });
}

comm::Request TensorGroup::receive(const at::Tensor& buffer, int from, Collective collective) {
  return comm::as_part_of(name_of(collective), [&] {
    return ranks_->receive(bytes_of_tensor(buffer), from, static_cast<int>(collective));
  });
}

void TensorGroup::wait(comm::Request& request, Collective collective) {
  // Messages that are done record no events: a step has a hundred thousand of them.
  if (comm::as_part_of(name_of(collective), [&] { return request.test(); })) return;
  timed_part(name_of(collective), waits_, [&] { request.wait(); });
}

void TensorGroup::wait(std::vector<Sent>& sent, Collective collective) {
  for (Sent& one : sent) wait(one.request, collective);
  sent.clear();
}

GatheredRows TensorGroup::gather(const Rows& own_rows, std::int64_t tokens) {
  GatheredRows gathered;
  gathered.group_ = this;
  if (shards_ == 1) {
    gathered.all_ = own_rows.front();
    return gathered;
  }
  gathered.all_ = at::empty({tokens, own_rows.front().size(1)}, own_rows.front().options());
  for (int i = 0; i < own(); ++i) {
    narrowed_to(gathered.all_, rows_of_shard(tokens, shard_of(i)))
        .copy_(own_rows[static_cast<std::size_t>(i)]);
  }
  gathered.arriving_.resize(static_cast<std::size_t>(ranks()));
  const at::Tensor mine = narrowed_to(gathered.all_, rows_of_rank(tokens, rank()));
  for (int step = 1; step < ranks(); ++step) {
    const int other = (rank() + step) % ranks();
    const at::Tensor theirs = narrowed_to(gathered.all_, rows_of_rank(tokens, other));
    gathered.arriving_[static_cast<std::size_t>(other)] = receive(theirs, other, Collective::Gather);
  }
  for (int step = 1; step < ranks(); ++step)  // the rank that needs these rows first gets them first
    send(gathered.sent_, mine, (rank() + ranks() - step) % ranks(), Collective::Gather);
  if (!overlap_) gathered.whole();
  return gathered;
}

at::Tensor TensorGroup::sum_of_own(const Part& part, std::int64_t first, std::int64_t count,
                                   at::ScalarType type) const {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < own(); ++i) parts.push_back(part(i, first, count));
  return own() == 1 ? parts.front() : kernels::sum_parts(parts, kernels::accumulator_type(type));
}

Rows TensorGroup::scatter(std::int64_t tokens, std::int64_t width, at::ScalarType type, const Part& part) {
  if (shards_ == 1) return {part(0, 0, tokens)};
  return exchange_totals(
      tokens, width, own() == 1 ? type : kernels::accumulator_type(type), type,
      [&](std::int64_t first, std::int64_t count) { return sum_of_own(part, first, count, type); });
}

Rows TensorGroup::scatter_totals(std::int64_t tokens, std::int64_t width, at::ScalarType type,
                                 const Total& total) {
  if (shards_ == 1) return {total(0, tokens)};
  return exchange_totals(tokens, width, type, type, total);
}

TensorGroup::Totals TensorGroup::receive_totals(std::int64_t tokens, std::int64_t width,
                                                at::ScalarType wire) {
  Totals totals;
  for (int i = 0; i < own(); ++i) {
    std::vector<at::Tensor>& parts = totals.of.emplace_back(static_cast<std::size_t>(ranks()));
    for (int from = 0; from < ranks(); ++from) {
      if (from == rank()) continue;
      at::Tensor& part = parts[static_cast<std::size_t>(from)];
      part = at::empty({rows_of_shard(tokens, shard_of(i)).count, width}, backend::on_device(wire));
      totals.arriving.push_back(receive(part, from, Collective::Scatter));
    }
  }
  return totals;
}

// Computes the parts for the farthest rank first and the own parts last, so that messages overlap with
// products; without overlap sends all parts at the end.
Rows TensorGroup::exchange_totals(std::int64_t tokens, std::int64_t width, at::ScalarType wire,
                                  at::ScalarType type, const Total& total) {
  Totals totals = receive_totals(tokens, width, wire);
  const auto form = [&](int shard) {
    const mesh::Shard block = rows_of_shard(tokens, shard);
    return total(block.begin, block.count);
  };
  std::vector<std::pair<int, at::Tensor>> formed;  // and not sent yet
  std::vector<Sent> sent;
  for (int step = ranks() - 1; step > 0; --step) {
    const int to = (rank() + step) % ranks();
    for (int i = 0; i < own(); ++i) {
      formed.emplace_back(to, form(to * own() + i));
      if (!overlap_) continue;
      send(sent, formed.back().second, to, Collective::Scatter);
      formed.clear();
    }
  }
  for (int i = 0; i < own(); ++i)
    totals.of[static_cast<std::size_t>(i)][static_cast<std::size_t>(rank())] = form(shard_of(i));
  for (const auto& [to, part] : formed) send(sent, part, to, Collective::Scatter);
  for (comm::Request& request : totals.arriving) wait(request, Collective::Scatter);
  Rows sums;
  for (const auto& parts : totals.of) sums.push_back(kernels::sum_parts(parts, type));
  wait(sent, Collective::Scatter);
  return sums;
}

GatheredRows& GatheredRows::operator=(GatheredRows&& other) {
  if (this == &other) return *this;
  finish();
  group_ = other.group_;
  all_ = std::move(other.all_);
  arriving_ = std::move(other.arriving_);
  sent_ = std::move(other.sent_);
  return *this;
}

// While an exception unwinds towards an abort, the messages are withdrawn instead (comm/communicator.h).
GatheredRows::~GatheredRows() noexcept(false) {
  if (std::uncaught_exceptions() == 0) finish();
}

void GatheredRows::finish() {
  if (!all_.defined()) return;
  whole();
  group_->wait(sent_, TensorGroup::Collective::Gather);
  all_.reset();
}

const at::Tensor& GatheredRows::whole() {
  for (comm::Request& request : arriving_) group_->wait(request, TensorGroup::Collective::Gather);
  return all_;
}

// Calls use(block) for every shard's rows as they arrive: the own ones first, then those of the next ranks.
template <class Use>
void GatheredRows::for_blocks(Use&& use) {
  const int ranks = group_->ranks();
  for (int step = 0; step < ranks; ++step) {
    const int rank = (group_->rank() + step) % ranks;
    if (!arriving_.empty())
      group_->wait(arriving_[static_cast<std::size_t>(rank)], TensorGroup::Collective::Gather);
    for (int i = 0; i < group_->own(); ++i) {
      const mesh::Shard block = group_->rows_of_shard(all_.size(0), rank * group_->own() + i);
      if (block.count > 0) use(block);
    }
  }
}

at::Tensor GatheredRows::product(const at::Tensor& weight) {
  if (group_->shards() == 1) return kernels::product(all_, weight);
  at::Tensor result = at::empty({all_.size(0), weight.size(0)}, all_.options());
  for_blocks([&](const mesh::Shard& block) {
    at::Tensor rows = narrowed_to(result, block);
    kernels::product_into(rows, narrowed_to(all_, block), weight);
  });
  return result;
}

at::Tensor GatheredRows::product_backward(const at::Tensor& weight) {
  if (group_->shards() == 1) return kernels::product_backward(all_, weight);
  at::Tensor result = at::empty({all_.size(0), weight.size(1)}, all_.options());
  for_blocks([&](const mesh::Shard& block) {
    at::Tensor rows = narrowed_to(result, block);
    kernels::product_backward_into(rows, narrowed_to(all_, block), weight);
  });
  return result;
}

}  // namespace penstock::nn
