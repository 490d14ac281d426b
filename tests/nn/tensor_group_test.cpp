// SPDX-License-Identifier: Apache-2.0
// The exchanges of a tensor group: the same bits for every number of ranks that carry the shards, and the
// values of plain products and sums.
#include "nn/groups/tensor_group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/collectives.h"
#include "comm/threads.h"
#include "nn/kernels/cpu/element.h"
#include "nn/kernels/sum_parts.h"
#include "nn/tensor_checks.h"

namespace penstock::testing {
namespace {

using nn::Rows;
using nn::TensorGroup;

constexpr std::int64_t kInner = 12, kOut = 10;
constexpr std::int64_t kTokens[] = {1, 2, 5, 7, 16, 37};  // fewer than shards, odd, and even

// Every way to carry so many shards: alone, or by as many ranks as have a power of two each.
std::vector<int> ranks_for(int shards) {
  std::vector<int> ranks{1};
  for (int t = 2; t <= shards; ++t) {
    const int each = shards / t;
    if (shards % t == 0 && (each & (each - 1)) == 0) ranks.push_back(t);
  }
  return ranks;
}

struct GroupSetting {
  int shards = 1;
  int ranks = 1;
  bool overlap = true;
  std::int64_t tokens = 1;
  at::ScalarType type = at::kDouble;
};

std::string text(const GroupSetting& s) {
  return std::to_string(s.shards) + " shards on " + std::to_string(s.ranks) + " ranks, " +
         std::to_string(s.tokens) + " tokens, " + c10::toString(s.type) + (s.overlap ? "" : ", no overlap");
}

// The operands, alike on all ranks. A shard has rows of `x` by its block, and its own weight and activations.
at::Tensor x_of(const GroupSetting& s) { return random_tensor({s.tokens, kInner}, s.type, 1); }
at::Tensor weight_of(const GroupSetting& s, int shard) {
  return random_tensor({kOut, kInner}, s.type, 100 + static_cast<std::uint64_t>(shard));
}
at::Tensor activations_of(const GroupSetting& s, int shard) {
  return random_tensor({s.tokens, kOut}, s.type, 200 + static_cast<std::uint64_t>(shard));
}

// What all ranks have together after each exchange: the rows that came, by rank, and those of all shards.
struct Outcome {
  std::vector<at::Tensor> gathered, products, products_backward;  // of each rank, of each shard
  at::Tensor scattered, totals;                                   // [N, width]
};

void put_rows(const TensorGroup& group, at::Tensor& whole, const Rows& blocks) {
  const mesh::Shard rows = group.rows_of_rank(whole.size(0), group.rank());
  whole.narrow(0, rows.begin, rows.count).copy_(group.join(blocks));
}

Rows own_blocks(const TensorGroup& group, const at::Tensor& whole) {
  const mesh::Shard rows = group.rows_of_rank(whole.size(0), group.rank());
  return group.split(whole.narrow(0, rows.begin, rows.count), whole.size(0));
}

void exchange(const GroupSetting& s, TensorGroup& group, Outcome& outcome, std::mutex& mutex) {
  nn::GatheredRows gathered = group.gather(own_blocks(group, x_of(s)), s.tokens);
  std::vector<at::Tensor> products, backward;
  for (int i = 0; i < group.own(); ++i) {
    const at::Tensor weight = weight_of(s, group.shard_of(i));
    products.push_back(gathered.product(weight));
    backward.push_back(gathered.product_backward(weight.t().contiguous()));
  }
  const Rows scattered =
      group.scatter(s.tokens, kInner, s.type, [&](int own_index, std::int64_t first, std::int64_t count) {
        const int shard = group.shard_of(own_index);
        return at::mm(activations_of(s, shard).narrow(0, first, count), weight_of(s, shard));
      });
  // Rows that a single shard has, as an embedding's.
  const Rows totals =
      group.scatter_totals(s.tokens, kInner, s.type, [&](std::int64_t first, std::int64_t count) {
        at::Tensor rows = at::zeros({count, kInner}, at::dtype(s.type));
        for (std::int64_t i = 0; i < count; ++i) {
          const auto shard = static_cast<int>((first + i) * 5 % s.shards);
          if (shard / group.own() == group.rank()) rows[i].copy_(x_of(s)[first + i]);
        }
        return rows;
      });
  const std::lock_guard lock(mutex);
  outcome.gathered[static_cast<std::size_t>(group.rank())] = gathered.whole().clone();
  for (int i = 0; i < group.own(); ++i) {
    outcome.products[static_cast<std::size_t>(group.shard_of(i))] = products[static_cast<std::size_t>(i)];
    outcome.products_backward[static_cast<std::size_t>(group.shard_of(i))] =
        backward[static_cast<std::size_t>(i)];
  }
  put_rows(group, outcome.scattered, scattered);
  put_rows(group, outcome.totals, totals);
}

Outcome exchanged(const GroupSetting& s) {
  const auto shards = static_cast<std::size_t>(s.shards);
  const at::Tensor none = at::zeros({s.tokens, kInner}, at::dtype(s.type));
  Outcome outcome{std::vector<at::Tensor>(static_cast<std::size_t>(s.ranks)), std::vector<at::Tensor>(shards),
                  std::vector<at::Tensor>(shards), none.clone(), none.clone()};
  std::mutex mutex;
  comm::run_ranks(s.ranks, [&](comm::Communicator& ranks) {
    at::set_num_threads(1);
    TensorGroup group(ranks, s.shards, s.overlap);
    exchange(s, group, outcome, mutex);
  });
  return outcome;
}

void expect_same(const Outcome& got, const Outcome& wanted) {
  for (const at::Tensor& rows : got.gathered)
    expect_same_bits(rows, wanted.gathered.front(), "gathered rows");
  for (std::size_t shard = 0; shard < wanted.products.size(); ++shard) {
    expect_same_bits(got.products[shard], wanted.products[shard], "product");
    expect_same_bits(got.products_backward[shard], wanted.products_backward[shard], "backward product");
  }
  expect_same_bits(got.scattered, wanted.scattered, "scattered sum");
  expect_same_bits(got.totals, wanted.totals, "scattered totals");
}

template <class Check>
void for_settings(at::ScalarType type, Check&& check) {
  for (const int shards : {1, 2, 3, 4, 6}) {
    for (const std::int64_t tokens : kTokens) {
      check(GroupSetting{.shards = shards, .tokens = tokens, .type = type});
    }
  }
}

TEST(TensorGroup, GivesTheBitsOfOneRankForEveryNumberOfRanks) {
  for (const at::ScalarType type : kComputeTypes) {
    for_settings(type, [](GroupSetting setting) {
      const Outcome wanted = exchanged(setting);
      for (const int ranks : ranks_for(setting.shards)) {
        for (const bool overlap : {true, false}) {
          setting.ranks = ranks;
          setting.overlap = overlap;
          SCOPED_TRACE(text(setting));
          expect_same(exchanged(setting), wanted);
        }
      }
    });
  }
}

TEST(TensorGroup, GivesPlainProductsAndSums) {
  for_settings(at::kDouble, [](GroupSetting setting) {
    for (const int ranks : ranks_for(setting.shards)) {
      setting.ranks = ranks;
      SCOPED_TRACE(text(setting));
      const Outcome got = exchanged(setting);
      at::Tensor sum = at::zeros({setting.tokens, kInner}, at::kDouble);
      for (int shard = 0; shard < setting.shards; ++shard) {
        const at::Tensor weight = weight_of(setting, shard), x = x_of(setting);
        const at::Tensor product = at::mm(x, weight.t());
        expect_near(got.products[static_cast<std::size_t>(shard)], product, 1e-12, "product");
        expect_near(got.products_backward[static_cast<std::size_t>(shard)], product, 1e-12,
                    "backward product");
        sum.add_(at::mm(activations_of(setting, shard), weight));
      }
      for (const at::Tensor& rows : got.gathered) expect_same_bits(rows, x_of(setting), "gathered rows");
      expect_near(got.scattered, sum, 1e-12, "scattered sum");
      expect_same_bits(got.totals, x_of(setting), "scattered totals");
    }
  });
}

TEST(TensorGroup, SharesOutEveryRowOnce) {
  for (const int shards : {1, 2, 3, 4, 6}) {
    for (const int ranks : ranks_for(shards)) {
      for (const std::int64_t tokens : kTokens) {
        comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
          const TensorGroup group(communicator, shards, true);
          std::int64_t next = 0;
          for (int rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(group.rows_of_rank(tokens, rank).begin, next);
            next += group.rows_of_rank(tokens, rank).count;
          }
          EXPECT_EQ(next, tokens);
          const at::Tensor rows = random_tensor({group.own_rows(tokens), 3}, at::kFloat, 1);
          const Rows blocks = group.split(rows, tokens);
          ASSERT_EQ(blocks.size(), static_cast<std::size_t>(group.own()));
          for (int i = 0; i < group.own(); ++i) {
            const std::int64_t count = group.rows_of_shard(tokens, group.shard_of(i)).count;
            EXPECT_EQ(blocks[static_cast<std::size_t>(i)].size(0), count);
          }
          expect_same_bits(group.join(blocks), rows, "joined");
        });
      }
    }
  }
}

// Rows gathered early and read late, and some never, while others travel.
TEST(TensorGroup, KeepsGathersInFlightApart) {
  for (const int ranks : {2, 4}) {
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      TensorGroup group(communicator, 4, true);
      const at::Tensor first = random_tensor({9, 3}, at::kFloat, 1), second = first.add(1),
                       third = first.add(2);
      nn::GatheredRows a = group.gather(own_blocks(group, first), 9);
      nn::GatheredRows b = group.gather(own_blocks(group, second), 9);
      { const nn::GatheredRows unread = group.gather(own_blocks(group, third), 9); }
      const Rows sums = group.scatter(9, 3, at::kFloat, [&](int, std::int64_t from, std::int64_t count) {
        return first.narrow(0, from, count);
      });
      const mesh::Shard own = group.rows_of_rank(9, group.rank());
      expect_same_bits(group.join(sums), first.mul(4).narrow(0, own.begin, own.count), "sum of four");
      expect_same_bits(b.whole(), second, "second");
      expect_same_bits(a.whole(), first, "first");
      a = std::move(b);
      expect_same_bits(a.whole(), second, "moved");
      a.finish();
      EXPECT_FALSE(a.defined());
    });
  }
}

const std::string kGather = "the gather of a tensor group's rows";
const std::string kScatter = "the scatter of a tensor group's sums";

// Rank 1 fails before its part of the work; the others say in which of the collectives they noticed it.
void expect_named(int ranks, const std::vector<std::string>& collectives,
                  const std::function<void(TensorGroup&)>& work) {
  std::map<int, std::string> reports;
  std::mutex mutex;
  const auto body = [&](comm::Communicator& communicator) {
    TensorGroup group(communicator, 4, true);
    if (group.rank() == 1) throw RunError("the power went out");
    work(group);
  };
  const auto report = [&](int rank, const std::exception& failure) {
    const std::lock_guard lock(mutex);
    reports[rank] = failure.what();
  };
  EXPECT_THROW(comm::run_ranks(ranks, body, report), RunError);
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 1) continue;
    EXPECT_TRUE(std::ranges::any_of(collectives, [&](const std::string& name) {
      return reports[rank] == "rank 1 failed: the power went out (noticed during " + name + ")";
    })) << reports[rank];
  }
}

TEST(TensorGroup, NamesTheCollectiveThatAFailedRankIsMissedIn) {
  const at::Tensor rows = random_tensor({9, 3}, at::kFloat, 1);
  const TensorGroup::Part part = [&](int, std::int64_t from, std::int64_t count) {
    return rows.narrow(0, from, count);
  };
  for (const int ranks : {2, 4}) {
    expect_named(ranks, {kGather},
                 [&](TensorGroup& group) { group.gather(own_blocks(group, rows), 9).product(rows); });
    expect_named(ranks, {kGather},
                 [&](TensorGroup& group) { group.gather(own_blocks(group, rows), 9); });  // never read
    expect_named(ranks, {kScatter}, [&](TensorGroup& group) { group.scatter(9, 3, at::kFloat, part); });
    expect_named(ranks, {kGather, kScatter}, [&](TensorGroup& group) {
      const nn::GatheredRows in_flight = group.gather(own_blocks(group, rows), 9);
      group.scatter(9, 3, at::kFloat, part);
    });
  }
}

// ((0+1)+(2+3))+...: neighbours first, then neighbouring sums.
at::Tensor tree(std::vector<at::Tensor> parts) {
  while (parts.size() > 1) {
    std::vector<at::Tensor> pairs;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(i + 1 < parts.size() ? parts[i].add(parts[i + 1]) : parts[i]);
    parts = std::move(pairs);
  }
  return parts.front();
}

std::vector<at::Tensor> random_parts(int count, at::IntArrayRef sizes, at::ScalarType type) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < count; ++i)
    parts.push_back(random_tensor(sizes, type, 300 + static_cast<std::uint64_t>(i)));
  return parts;
}

// A rank of two whose other one is silent; notes when its messages are withdrawn.
class Silence final : public comm::Collectives {
 public:
  explicit Silence(std::vector<std::string>& notes) : Collectives(comm::group_of_all(0, 2)), notes_(notes) {}
  void abort(const std::string&) override {}
  void throw_if_failed() override {}

 protected:
  struct Waiting final : comm::Request::State {
    Waiting(std::vector<std::string>& notes, const char* name) : notes_(notes), name_(name) {}
    ~Waiting() override { notes_.push_back(name_); }
    bool test() override { return false; }
    void wait() override { throw RunError("the other rank is silent"); }
    std::vector<std::string>& notes_;
    const char* name_;
  };
  comm::Request post_send(std::span<const std::byte>, int, int) override {
    return comm::Request(std::make_unique<Waiting>(notes_, "sent message"));
  }
  comm::Request post_receive(std::span<std::byte>, int, int) override {
    return comm::Request(std::make_unique<Waiting>(notes_, "message to come"));
  }
  std::unique_ptr<comm::Communicator> subgroup(comm::Group, int) override { return nullptr; }

 private:
  std::vector<std::string>& notes_;
};

TEST(TensorGroup, WithdrawsMessagesOfAFailedExchangeBeforeTheirBuffersGo) {
  std::vector<std::string> notes;
  std::vector<float> memory(2 * kInner);
  Silence ranks(notes);
  TensorGroup group(ranks, 2, true);
  const auto part = [&](int, std::int64_t, std::int64_t count) {
    return at::from_blob(
        memory.data(), {count, kInner}, [&](void*) { notes.push_back("buffer"); }, at::dtype(at::kFloat));
  };
  EXPECT_THROW(group.scatter(4, kInner, at::kFloat, part), RunError);
  EXPECT_EQ(notes, (std::vector<std::string>{"sent message", "buffer", "message to come", "buffer"}))
      << "what is sent, then what was to be added to the part of this rank";
}

TEST(SumParts, IsAnAlignedTreeInTheAccumulatorTypeRoundedOnce) {
  for (const at::ScalarType type : kComputeTypes) {
    const at::ScalarType wide = nn::kernels::accumulator_type(type);
    for (int count = 1; count <= 9; ++count) {
      for (const std::int64_t rows : {0, 1, 51, 64, 257}) {
        const auto parts = random_parts(count, {rows, 5}, type);
        std::vector<at::Tensor> widened;
        for (const at::Tensor& part : parts) widened.push_back(part.to(wide));
        const at::Tensor wanted = tree(widened);
        const std::string what = std::to_string(count) + " parts of " + std::to_string(rows) + " rows";
        expect_same_bits(nn::kernels::sum_parts(parts, type), wanted.to(type), what);
        expect_same_bits(nn::kernels::sum_parts(parts, wide), wanted, what + ", wide");
        if (type != at::kFloat) continue;
        expect_same_bits(nn::kernels::sum_parts(parts, at::kBFloat16), wanted.to(at::kBFloat16),
                         what + ", narrowed");
      }
    }
  }
}

TEST(SumParts, OfSumsOfAlignedRunsHasTheSameBits) {
  for (const at::ScalarType type : kComputeTypes) {
    const at::ScalarType wide = nn::kernels::accumulator_type(type);
    for (const int count : {4, 6, 8, 12}) {
      const auto parts = random_parts(count, {33, 20}, type);
      for (int run = 1; run <= count; run *= 2) {
        if (count % run != 0) continue;
        std::vector<at::Tensor> sums;
        for (int first = 0; first < count; first += run)
          sums.push_back(nn::kernels::sum_parts(std::span(parts).subspan(first, run), wide));
        expect_same_bits(nn::kernels::sum_parts(sums, type), nn::kernels::sum_parts(parts, type),
                         std::to_string(count) + " parts in runs of " + std::to_string(run));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
