// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism with sequence parallelism (docs/mesh.md, "Tensor ranks"; Shoeybi et al. 2019;
// Korthikanti et al. 2022): outside the products the ranks split a slice's tokens by rows, inside them they
// split heads and ffn columns.
//
// A layer is computed by T logical shards. Each of t ranks has T/t consecutive shards, each with its own
// parameters, records and block of rows (docs/mesh.md, "Equal bits"). The arithmetic depends on T alone:
// products are cut by the shards' blocks of rows and partial results are added in one binary tree, so t = 1
// and every t of which T is a power of two times give the same bits. With one shard nothing is cut, copied or
// sent.
//
// N = tokens of a slice of a micro-batch; shard k has the k-th block of its rows. All ranks of the group make
// the same calls in the same order, each from one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "mesh/shard.h"
#include "nn/groups/waits.h"

namespace penstock::nn {

using Rows = std::vector<at::Tensor>;  // one block of rows [n, h] per shard of the rank

class GatheredRows;

at::Tensor narrowed_to(const at::Tensor& rows, const mesh::Shard& block);  // a view

class TensorGroup {
 public:
  // The value is the channel.
  enum class Collective : std::uint8_t { Gather, Scatter };

  // One shard on one rank.
  TensorGroup() = default;
  // `ranks` must outlive the group; its size divides `shards`. `overlap`: products run on arrived rows while
  // the next ones are in flight; the same bits.
  TensorGroup(comm::Communicator& ranks, int shards, bool overlap);

  int shards() const { return shards_; }                     // T
  int ranks() const { return ranks_ ? ranks_->size() : 1; }  // t
  int rank() const { return ranks_ ? ranks_->rank() : 0; }
  int own() const { return shards_ / ranks(); }  // T/t
  int shard_of(int own_index) const { return rank() * own() + own_index; }
  comm::Communicator& communicator() { return *ranks_; }

  // The rows of a shard, and of all shards of a rank.
  mesh::Shard rows_of_shard(std::int64_t tokens, int shard) const;
  mesh::Shard rows_of_rank(std::int64_t tokens, int rank) const;
  std::int64_t own_rows(std::int64_t tokens) const { return rows_of_rank(tokens, rank()).count; }

  // Splits a rank's rows into the blocks of its shards, and joins them; no copy for a single shard.
  Rows split(const at::Tensor& rows, std::int64_t tokens) const;
  at::Tensor join(const Rows& blocks) const;

  // Posts the messages that gather the rows of all shards. Without overlap also waits for the rows.
  GatheredRows gather(const Rows& own, std::int64_t tokens);

  // Returns each own shard's rows of the sum of all shards' parts. part(i, first, count) is the i-th own
  // shard's part for the rows [first, first + count), [count, width] in `type`. Parts are added in the
  // accumulator type; the sum is rounded to `type`.
  using Part = std::function<at::Tensor(int own_index, std::int64_t first, std::int64_t count)>;
  Rows scatter(std::int64_t tokens, std::int64_t width, at::ScalarType type, const Part& part);

  // The same, where total(first, count) is already the sum of the own shards' parts, in `type`.
  using Total = std::function<at::Tensor(std::int64_t first, std::int64_t count)>;
  Rows scatter_totals(std::int64_t tokens, std::int64_t width, at::ScalarType type, const Total& total);

  // This rank's waits for other ranks' rows since the last call, and the bytes it has sent.
  Waits take_waits() { return std::exchange(waits_, {}); }
  Bytes sent() const { return ranks_ ? ranks_->bytes_sent() : 0; }

 private:
  friend class GatheredRows;
  struct Sent {
    at::Tensor buffer;
    comm::Request request;  // destroyed before its buffer
  };

  // Failures name the collective, which has its own channel.
  void send(std::vector<Sent>& sent, const at::Tensor& buffer, int to, Collective collective);
  comm::Request receive(const at::Tensor& buffer, int from, Collective collective);
  void wait(comm::Request& request, Collective collective);
  void wait(std::vector<Sent>& sent, Collective collective);
  at::Tensor sum_of_own(const Part& part, std::int64_t first, std::int64_t count, at::ScalarType type) const;
  // Totals of each own shard's rows from each rank, [own shard][rank]; undefined for this rank.
  struct Totals {
    std::vector<std::vector<at::Tensor>> of;
    std::vector<comm::Request> arriving;
  };
  Totals receive_totals(std::int64_t tokens, std::int64_t width, at::ScalarType wire);
  Rows exchange_totals(std::int64_t tokens, std::int64_t width, at::ScalarType wire, at::ScalarType type,
                       const Total& total);

  comm::Communicator* ranks_ = nullptr;
  int shards_ = 1;
  bool overlap_ = true;
  Waits waits_;
};

// The rows of all shards [N, h], arrived or in flight. The destructor waits for the messages and may throw,
// as any wait does.
class GatheredRows {
 public:
  GatheredRows() = default;  // no rows
  GatheredRows(GatheredRows&&) noexcept = default;
  GatheredRows& operator=(GatheredRows&& other);
  ~GatheredRows() noexcept(false);

  bool defined() const { return all_.defined(); }

  // [N, h] · weightᵀ [h, out] and [N, h] · weight [h, in], one block of rows at a time as they arrive.
  at::Tensor product(const at::Tensor& weight);
  at::Tensor product_backward(const at::Tensor& weight);

  // Waits for all rows and returns them.
  const at::Tensor& whole();

  // Waits for all messages and frees the rows.
  void finish();

 private:
  friend class TensorGroup;
  template <class Use>
  void for_blocks(Use&& use);

  TensorGroup* group_ = nullptr;
  at::Tensor all_;
  std::vector<comm::Request> arriving_;  // [rank]
  std::vector<TensorGroup::Sent> sent_;
};

}  // namespace penstock::nn
