// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism with sequence parallelism (docs/mesh.md, "Tensor ranks"; Shoeybi et al. 2019;
// Korthikanti et al. 2022): outside the products the tokens of a slice are shared out by rows, inside them
// heads and ffn columns are.
//
// A layer is computed by T logical shards, of which each of t ranks carries T/t neighbouring ones, each with
// its own parameters, records and block of rows (docs/mesh.md, "Equal bits"). Whatever is computed depends on
// T alone: products are cut by the shards' blocks of rows and partial results are added in one tree, so every
// t that divides T gives the same bits. With one shard nothing is cut, copied or sent.
//
// N = tokens of a slice of a micro-batch; shard k has the k-th block of its rows. All calls are made by all
// ranks of the group in the same order, and by one thread of each.
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

using Rows = std::vector<at::Tensor>;  // a block of rows [n, h] of each of a rank's shards

class GatheredRows;

class TensorGroup {
 public:
  // Each has the channel of its number.
  enum class Collective : std::uint8_t { Gather, Scatter };

  // One shard on one rank.
  TensorGroup() = default;
  // `ranks` outlives the group, and its size divides `shards`. `overlap`: products with the rows that are
  // there run while the next ones travel; the same bits.
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

  // A rank's rows as the blocks of its shards, and back; no copy for a single shard.
  Rows split(const at::Tensor& rows, std::int64_t tokens) const;
  at::Tensor join(const Rows& blocks) const;

  // Posts the messages that bring together the rows of all shards; waits for none.
  GatheredRows gather(const Rows& own, std::int64_t tokens);

  // Each shard's rows of the sum over all shards of their parts. part(i, first, count) is the part of the
  // i-th own shard for the rows [first, first + count), [count, width] in `type`. Parts are added in the
  // accumulator type; the sum is rounded to `type`.
  using Part = std::function<at::Tensor(int own_index, std::int64_t first, std::int64_t count)>;
  Rows scatter(std::int64_t tokens, std::int64_t width, at::ScalarType type, const Part& part);

  // The same where total(first, count) is already the sum of the own shards' parts, in `type`.
  using Total = std::function<at::Tensor(std::int64_t first, std::int64_t count)>;
  Rows scatter_totals(std::int64_t tokens, std::int64_t width, at::ScalarType type, const Total& total);

  // This rank's waits for rows of others since they were last taken, and bytes it has sent.
  Waits take_waits() { return std::exchange(waits_, {}); }
  Bytes sent() const { return ranks_ ? ranks_->bytes_sent() : 0; }

 private:
  friend class GatheredRows;
  struct Sent {
    at::Tensor buffer;
    comm::Request request;  // destroyed before its buffer
  };

  // Failures name the collective, which has a channel of its own.
  void send(std::vector<Sent>& sent, const at::Tensor& buffer, int to, Collective collective);
  comm::Request receive(const at::Tensor& buffer, int from, Collective collective);
  void wait(comm::Request& request, Collective collective);
  void wait(std::vector<Sent>& sent, Collective collective);
  at::Tensor sum_of_own(const Part& part, std::int64_t first, std::int64_t count, at::ScalarType type) const;
  // Of each own shard's rows the totals of each rank, [own shard][rank]; the own rank's are undefined.
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

// The rows of all shards [N, h], arriving. Waits for its messages when it is destroyed, which may throw as
// any wait does.
class GatheredRows {
 public:
  GatheredRows() = default;  // none
  GatheredRows(GatheredRows&&) noexcept = default;
  GatheredRows& operator=(GatheredRows&& other);
  ~GatheredRows() noexcept(false);

  bool defined() const { return all_.defined(); }

  // [N, h] · weightᵀ [h, out] and [N, h] · weight [h, in], block of rows by block of rows as they arrive.
  at::Tensor product(const at::Tensor& weight);
  at::Tensor product_backward(const at::Tensor& weight);

  // All rows, once they have arrived.
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
