// SPDX-License-Identifier: Apache-2.0
// Laws of what goes wrong without ending the group: it is told, with names, and other messages still pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/message_laws.h"
#include "failure.h"

namespace penstock::comm {

// In a group of its own, because the group is of no more use afterwards. Short, so that MPI sends it without
// the receiver's consent (but to other ranks only: under MPI this law needs two).
template <std::size_t expected, std::size_t actual>
void a_message_of_another_length_is_refused(Communicator& ranks) {
  const auto group = ranks.split(0, 0);
  const std::vector<std::byte> written(actual, std::byte{1});
  std::vector<std::byte> text(std::max(expected, actual));
  Request send = group->send(written, next_of(*group), 3);
  Request receive = group->receive(std::span(text).first(expected), previous_of(*group), 3);
  const std::string told = failure<RunError>([&] { receive.wait(); });
  send.wait();
  EXPECT_EQ(told, "the message from rank " + std::to_string(previous_of(*group)) + " on channel 3 (" +
                      print_bytes(expected) + ") arrived with another length: " + std::to_string(actual) +
                      " bytes instead of " + std::to_string(expected));
  EXPECT_EQ(text, std::vector<std::byte>(text.size())) << "nothing is written";
}

// Waits for a letter from the previous rank that nobody writes.
inline std::string wait_in_vain(Communicator& ranks) {
  std::vector<std::byte> text(2048);
  ranks.set_timeout(0.15);
  Request receive = ranks.receive(text, previous_of(ranks), 7);
  const std::string told = failure<RunError>([&] { receive.wait(); });
  ranks.set_timeout(120);
  return told;
}

inline void a_stuck_peer_is_named_with_its_channel(Communicator& ranks) {
  const std::string told = wait_in_vain(ranks);
  const std::string message =
      "the message from rank " + std::to_string(previous_of(ranks)) + " on channel 7 (2.00 KiB)";
  EXPECT_NE(told.find(message), std::string::npos) << told;
  ranks.barrier();
}

inline void a_stuck_peer_is_named_by_its_rank_in_the_world(Communicator& ranks) {
  const auto reversed = ranks.split(0, -ranks.rank());
  const std::string told = wait_in_vain(*reversed);
  EXPECT_NE(told.find("from rank " + std::to_string(next_of(ranks)) + " "), std::string::npos) << told;
  ranks.barrier();
}

inline void a_receive_that_gave_up_takes_nothing(Communicator& ranks) {
  wait_in_vain(ranks);
  ranks.barrier();
  Correspondence letters(ranks);
  letters.send(2, 7);
  letters.expect(2, 7);
  wait_all(letters.sends);
}

inline void ranks_and_channels_that_are_none_are_refused(Communicator& ranks) {
  std::vector<std::byte> text(1);
  EXPECT_ANY_THROW(ranks.send(text, ranks.size(), 0));
  EXPECT_ANY_THROW(ranks.send(text, -1, 0));
  EXPECT_ANY_THROW(ranks.receive(text, 0, -1));
  EXPECT_ANY_THROW(ranks.receive(text, 0, 255));
  EXPECT_ANY_THROW(ranks.broadcast(text, ranks.size()));
  EXPECT_ANY_THROW(ranks.all_gather(text, std::span(text).first(0)));
}

}  // namespace penstock::comm
