// SPDX-License-Identifier: Apache-2.0
// Laws of the collectives, each against a plain loop over what all ranks are known to give.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/message_laws.h"

namespace penstock::comm {

inline constexpr std::size_t odd_counts[] = {0, 1, 2, 3, 7, 64, 1000, 1023, 5003, 100'003};

template <class T>
inline constexpr Type type_of = std::is_same_v<T, float>    ? Type::F32
                                : std::is_same_v<T, double> ? Type::F64
                                                            : Type::I64;

// What a rank gives: numbers of very different sizes, so that the order of a float sum shows in its bits.
template <class T>
std::vector<T> gift(std::size_t count, int rank) {
  std::mt19937_64 random(count * 31 + rank);
  std::vector<T> values(count);
  for (T& value : values) {
    const double number = std::ldexp(static_cast<double>(random() >> 11), -static_cast<int>(random() % 40));
    value = static_cast<T>(random() % 2 ? number : -number);
  }
  return values;
}

// The plain loop: 0, 1, ..., n-1.
template <class T>
std::vector<T> sum_of_gifts(std::size_t count, int ranks) {
  std::vector<std::vector<T>> row;  // added two by two until one is left
  for (int rank = 0; rank < ranks; ++rank) row.push_back(gift<T>(count, rank));
  while (row.size() > 1) {
    std::vector<std::vector<T>> shorter;
    for (std::size_t k = 0; k < row.size(); k += 2) {
      shorter.push_back(row[k]);
      for (std::size_t i = 0; k + 1 < row.size() && i < count; ++i) shorter.back()[i] += row[k + 1][i];
    }
    row = std::move(shorter);
  }
  return row.front();
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline void no_rank_leaves_a_barrier_before_all_came(Communicator& ranks) {
  using Clock = std::chrono::steady_clock;
  for (int late = 0; late < ranks.size(); ++late) {
    ranks.barrier();
    if (ranks.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::int64_t came = Clock::now().time_since_epoch().count();  // one clock for all processes of a machine
    ranks.barrier();
    const std::int64_t left = Clock::now().time_since_epoch().count();
    ranks.all_reduce(&came, 1, Type::I64, Reduction::Max);
    EXPECT_GE(left, came) << "late: " << late;
  }
}

inline void broadcast_reaches_all_from_every_root(Communicator& ranks) {
  for (int root = 0; root < ranks.size(); ++root) {
    for (std::size_t bytes : {0, 1, 13, 300'000}) {
      const auto written = letter(bytes, root, 0, 0);
      auto text = ranks.rank() == root ? written : std::vector<std::byte>(bytes);
      ranks.broadcast(text, root);
      EXPECT_TRUE(text == written) << bytes << " bytes from " << root;
    }
  }
}

template <class T>
void float_sums_have_the_bits_of_a_binary_tree(Communicator& ranks) {
  for (std::size_t count : odd_counts) {
    std::vector<T> values = gift<T>(count, ranks.rank());
    ranks.all_reduce(values.data(), count, type_of<T>, Reduction::Sum);
    EXPECT_TRUE(same_bits(values, sum_of_gifts<T>(count, ranks.size()))) << count << " values";
  }
  const std::size_t more_than_a_turn = 1'100'003;
  std::vector<T> values = gift<T>(more_than_a_turn, ranks.rank());
  ranks.all_reduce(values.data(), more_than_a_turn, type_of<T>, Reduction::Sum);
  EXPECT_TRUE(same_bits(values, sum_of_gifts<T>(more_than_a_turn, ranks.size())));
}

inline void integer_sums_are_exact(Communicator& ranks) {
  for (std::size_t count : odd_counts) {
    std::vector<std::int64_t> values = gift<std::int64_t>(count, ranks.rank());
    ranks.all_reduce(values.data(), count, Type::I64, Reduction::Sum);
    EXPECT_EQ(values, sum_of_gifts<std::int64_t>(count, ranks.size())) << count << " values";
  }
}

template <class T>
void expect_maximum(Communicator& ranks, std::size_t count) {
  std::vector<T> values = gift<T>(count, ranks.rank());
  ranks.all_reduce(values.data(), count, type_of<T>, Reduction::Max);
  std::vector<T> largest = gift<T>(count, 0);
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const std::vector<T> other = gift<T>(count, rank);
    for (std::size_t i = 0; i < count; ++i) largest[i] = std::max(largest[i], other[i]);
  }
  EXPECT_TRUE(same_bits(values, largest)) << count << " values";
}

inline void the_maximum_is_the_largest(Communicator& ranks) {
  for (std::size_t count : odd_counts) {
    expect_maximum<float>(ranks, count);
    expect_maximum<double>(ranks, count);
    expect_maximum<std::int64_t>(ranks, count);
  }
}

inline void a_not_a_number_is_the_maximum(Communicator& ranks) {
  for (int culprit = 0; culprit < ranks.size(); ++culprit) {
    double value = ranks.rank() == culprit ? std::numeric_limits<double>::quiet_NaN() : 1.0 + ranks.rank();
    ranks.all_reduce(&value, 1, Type::F64, Reduction::Max);
    EXPECT_TRUE(std::isnan(value)) << "given by rank " << culprit;
  }
}

inline void all_gather_keeps_rank_order(Communicator& ranks) {
  for (std::size_t bytes : {0, 1, 5, 1000, 100'003}) {
    std::vector<std::byte> all(bytes * ranks.size()), expected;
    ranks.all_gather(letter(bytes, ranks.rank(), 0, 0), all);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const auto block = letter(bytes, rank, 0, 0);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    EXPECT_TRUE(all == expected) << bytes << " bytes";
  }
}

template <class T>
void expect_block_of_the_sum(Communicator& ranks, std::size_t count) {
  const std::vector<T> all = gift<T>(count * ranks.size(), ranks.rank());
  std::vector<T> mine(count);
  ranks.reduce_scatter(all.data(), mine.data(), count, type_of<T>);
  const std::vector<T> sum = sum_of_gifts<T>(count * ranks.size(), ranks.size());
  const auto block = sum.begin() + ranks.rank() * count;
  EXPECT_TRUE(same_bits(mine, std::vector<T>(block, block + count))) << count << " values a rank";
}

inline void reduce_scatter_gives_each_its_block_of_the_sum(Communicator& ranks) {
  for (std::size_t count : odd_counts) {
    expect_block_of_the_sum<float>(ranks, count);
    expect_block_of_the_sum<double>(ranks, count);
    expect_block_of_the_sum<std::int64_t>(ranks, count);
  }
}

inline void all_to_all_transposes_the_blocks(Communicator& ranks) {
  for (std::size_t bytes : {0, 1, 9, 70'001}) {
    std::vector<std::byte> sent, expected, received(bytes * ranks.size());
    for (int peer = 0; peer < ranks.size(); ++peer) {
      const auto to_peer = letter(bytes, ranks.rank(), peer, 0),
                 from_peer = letter(bytes, peer, ranks.rank(), 0);
      sent.insert(sent.end(), to_peer.begin(), to_peer.end());
      expected.insert(expected.end(), from_peer.begin(), from_peer.end());
    }
    ranks.all_to_all(sent, received);
    EXPECT_TRUE(received == expected) << bytes << " bytes a block";
  }
}

inline void collectives_leave_messages_under_way_alone(Communicator& ranks) {
  Correspondence letters(ranks);
  letters.send(3, 0);
  std::vector<double> values = gift<double>(10, ranks.rank());
  ranks.all_reduce(values.data(), values.size(), Type::F64, Reduction::Sum);
  ranks.barrier();
  letters.expect(3, 0);
  wait_all(letters.sends);
  EXPECT_TRUE(same_bits(values, sum_of_gifts<double>(10, ranks.size())));
}

}  // namespace penstock::comm
