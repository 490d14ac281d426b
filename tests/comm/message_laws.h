// SPDX-License-Identifier: Apache-2.0
// Laws of point-to-point messages. Each rank writes to the next in a ring and hears from the one before;
// alone, to itself.
#pragma once

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "comm/communicator.h"

namespace penstock::comm {

inline int next_of(const Communicator& ranks) { return (ranks.rank() + 1) % ranks.size(); }
inline int previous_of(const Communicator& ranks) { return (ranks.rank() + ranks.size() - 1) % ranks.size(); }

// Bytes that tell who wrote them, and which message they are.
inline std::vector<std::byte> letter(std::size_t bytes, int from, int channel, int number) {
  std::vector<std::byte> text(bytes);
  std::uint32_t state = 1u + from * 7919u + channel * 104729u + number * 1299709u;
  for (std::byte& byte : text) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return text;
}

// Letters number 0..count-1 of 24 bytes on a channel, all sent before anything is waited for.
struct Correspondence {
  explicit Correspondence(Communicator& ranks) : ranks(ranks) {}

  void send(int count, int channel) {
    for (int number = 0; number < count; ++number) {
      written.push_back(letter(24, ranks.rank(), channel, number));
      sends.push_back(ranks.send(written.back(), next_of(ranks), channel));
    }
  }
  void expect(int count, int channel) {
    for (int number = 0; number < count; ++number) {
      std::vector<std::byte> text(24);
      ranks.receive(text, previous_of(ranks), channel).wait();
      EXPECT_EQ(text, letter(24, previous_of(ranks), channel, number))
          << "channel " << channel << ", " << number;
    }
  }

  Communicator& ranks;
  std::vector<std::vector<std::byte>> written;
  std::vector<Request> sends;
};

inline void messages_of_a_channel_arrive_in_order(Communicator& ranks) {
  Correspondence letters(ranks);
  letters.send(50, 0);
  letters.expect(50, 0);
  wait_all(letters.sends);
}

inline void channels_may_be_received_in_another_order_than_sent(Communicator& ranks) {
  Correspondence letters(ranks);
  for (int channel : {0, 1, 2, 3}) letters.send(5, channel);
  for (int channel : {3, 1, 0, 2}) letters.expect(5, channel);
  wait_all(letters.sends);
}

inline void many_messages_may_be_in_flight(Communicator& ranks) {
  constexpr int count = 300, channels = 3;
  std::vector<std::vector<std::byte>> rooms(count * channels, std::vector<std::byte>(24));
  std::vector<Request> receives;
  for (int i = 0; i < count * channels; ++i) {
    receives.push_back(ranks.receive(rooms[i], previous_of(ranks), i % channels));
  }
  Correspondence letters(ranks);
  for (int channel : {2, 0, 1}) letters.send(count, channel);
  wait_all(receives);
  wait_all(letters.sends);
  for (int i = 0; i < count * channels; ++i) {
    EXPECT_EQ(rooms[i], letter(24, previous_of(ranks), i % channels, i / channels)) << "message " << i;
  }
}

inline void pass_on(Communicator& ranks, std::size_t bytes) {
  const auto written = letter(bytes, ranks.rank(), 0, static_cast<int>(bytes));
  std::vector<std::byte> text(bytes);
  Request send = ranks.send(written, next_of(ranks), 0);
  ranks.receive(text, previous_of(ranks), 0).wait();
  send.wait();
  EXPECT_TRUE(text == letter(bytes, previous_of(ranks), 0, static_cast<int>(bytes))) << bytes << " bytes";
}

inline void messages_of_every_size_arrive_whole(Communicator& ranks) {
  for (std::size_t bytes = 0; bytes < 20; ++bytes) pass_on(ranks, bytes);
  for (std::size_t bytes : {4095, 4096, 4097, 65535, 65536, 65537, 1000003}) pass_on(ranks, bytes);
}

inline void a_hundred_megabytes_arrive_whole(Communicator& ranks) {
  constexpr std::size_t bytes = 100'000'000;
  const int last = ranks.size() - 1;
  std::vector<std::byte> written, text;
  Request send, receive;
  if (ranks.rank() == last) {
    text.resize(bytes);
    receive = ranks.receive(text, 0, 1);
  }
  if (ranks.rank() == 0) {
    written = letter(bytes, 0, 1, 0);
    send = ranks.send(written, last, 1);
  }
  receive.wait();
  send.wait();
  EXPECT_TRUE(ranks.rank() != last || text == letter(bytes, 0, 1, 0));
}

inline void ranks_may_write_to_themselves(Communicator& ranks) {
  for (std::size_t bytes : {0, 1, 100'000}) {
    const auto first = letter(bytes, ranks.rank(), 5, 1), second = letter(bytes, ranks.rank(), 5, 2);
    std::vector<std::byte> one(bytes), two(bytes);
    Request early = ranks.receive(one, ranks.rank(), 5);
    Request sends[] = {ranks.send(first, ranks.rank(), 5), ranks.send(second, ranks.rank(), 5)};
    Request late = ranks.receive(two, ranks.rank(), 5);
    for (Request* request : {&early, &late, &sends[0], &sends[1]}) request->wait();
    EXPECT_EQ(one, first);
    EXPECT_EQ(two, second);
  }
}

inline void testing_alone_finishes_a_message(Communicator& ranks) {
  const auto written = letter(200'000, ranks.rank(), 0, 0);
  std::vector<std::byte> text(written.size());
  Request receive = ranks.receive(text, previous_of(ranks), 0);
  Request send = ranks.send(written, next_of(ranks), 0);
  while (!(receive.test() & send.test())) std::this_thread::yield();
  EXPECT_TRUE(receive.done() && send.done());
  EXPECT_TRUE(receive.test()) << "an empty request is done";
  EXPECT_TRUE(text == letter(written.size(), previous_of(ranks), 0, 0));
}

}  // namespace penstock::comm
