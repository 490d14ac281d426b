// SPDX-License-Identifier: Apache-2.0
// Laws of sub-groups.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "comm/communicator.h"
#include "comm/message_laws.h"

namespace penstock::comm {

// The ranks of `everyone` that are in the group, in the group's order.
inline std::vector<int> members(Communicator& everyone, Communicator& group) {
  const int mine = everyone.rank();
  std::vector<int> all(group.size());
  group.all_gather(bytes_of(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

inline void split_sorts_by_key_then_rank(Communicator& ranks) {
  std::vector<int> even_or_odd, reversed, everyone;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank % 2 == ranks.rank() % 2) even_or_odd.push_back(rank);
    everyone.push_back(rank);
    reversed.insert(reversed.begin(), rank);
  }
  const auto parity = ranks.split(ranks.rank() % 2, 0);
  EXPECT_EQ(members(ranks, *parity), even_or_odd);
  EXPECT_EQ(even_or_odd[parity->rank()], ranks.rank());
  EXPECT_EQ(members(ranks, *ranks.split(-7, -ranks.rank())), reversed);
  EXPECT_EQ(members(ranks, *ranks.split(0, 42)), everyone);
  EXPECT_EQ(members(ranks, *ranks.split(ranks.rank(), 0)), std::vector{ranks.rank()});
}

inline void groups_of_groups_work(Communicator& ranks) {
  const auto half = ranks.split(ranks.rank() % 2, -ranks.rank());
  const auto quarter = half->split(half->rank() % 2, 0);
  std::vector<int> expected;
  for (int other : members(ranks, *half)) {
    if ((other / 2) % 2 == (ranks.rank() / 2) % 2) expected.push_back(other);
  }
  EXPECT_EQ(members(ranks, *quarter), expected);
  for (Communicator* group : {quarter.get(), half.get(), &ranks}) pass_on(*group, 1001);
}

// The same channel in two groups of the same ranks, received in the other order.
inline void messages_stay_in_their_group(Communicator& ranks) {
  const auto twin = ranks.split(0, 0), reversed = ranks.split(0, -ranks.rank());
  const auto first = letter(24, ranks.rank(), 0, 1), second = letter(24, ranks.rank(), 0, 2),
             third = letter(24, reversed->rank(), 0, 3);
  std::vector<std::byte> one(24), two(24), three(24);
  Request sends[] = {ranks.send(first, next_of(ranks), 0), twin->send(second, next_of(*twin), 0),
                     reversed->send(third, next_of(*reversed), 0)};
  reversed->receive(three, previous_of(*reversed), 0).wait();
  twin->receive(two, previous_of(*twin), 0).wait();
  ranks.receive(one, previous_of(ranks), 0).wait();
  for (Request& send : sends) send.wait();
  EXPECT_EQ(one, letter(24, previous_of(ranks), 0, 1));
  EXPECT_EQ(two, letter(24, previous_of(ranks), 0, 2));
  EXPECT_EQ(three, letter(24, previous_of(*reversed), 0, 3));
}

inline void groups_work_at_the_same_time(Communicator& ranks) {
  const auto rows = ranks.split(ranks.rank() / 2, 0), columns = ranks.split(ranks.rank() % 2, 0);
  std::vector<Request> requests;
  std::vector<std::byte> row_text(500), column_text(500);
  const auto row_letter = letter(500, rows->rank(), 0, 0), column_letter = letter(500, columns->rank(), 0, 0);
  requests.push_back(rows->receive(row_text, previous_of(*rows), 0));
  requests.push_back(columns->receive(column_text, previous_of(*columns), 0));
  requests.push_back(columns->send(column_letter, next_of(*columns), 0));
  requests.push_back(rows->send(row_letter, next_of(*rows), 0));
  rows->barrier();
  std::int64_t sum = 1;
  columns->all_reduce(&sum, 1, Type::I64, Reduction::Sum);
  wait_all(requests);
  EXPECT_EQ(sum, columns->size());
  EXPECT_EQ(row_text, letter(500, previous_of(*rows), 0, 0));
  EXPECT_EQ(column_text, letter(500, previous_of(*columns), 0, 0));
}

}  // namespace penstock::comm
