// SPDX-License-Identifier: Apache-2.0
// What messages between GPUs keep, whatever the GPUs and whatever moves the bytes. A law is run by all
// ranks of a group at once. `gpu` is a rank's: GPU.numbers(count) is memory of it, GPU.fill(span, value)
// and GPU.read(span) are work of the rank's stream, and read waits for it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace penstock::comm {

inline constexpr std::size_t kGpuNumbers = 500;

inline std::span<std::byte> bytes_of_numbers(std::span<float> values) {
  return std::as_writable_bytes(values);
}

// Neighbours send both ways at once on two channels, and words of the host's between.
template <class Gpu>
void keep_order_on_every_channel_and_both_ways(Communicator& world, Gpu& gpu) {
  constexpr int kRounds = 20;
  const int rank = world.rank(), size = world.size(), next = (rank + 1) % size,
            before = (rank + size - 1) % size;
  std::map<int, std::span<float>> sent, received;
  for (const int channel : {3, 7}) {
    sent[channel] = gpu.numbers(kGpuNumbers);
    received[channel] = gpu.numbers(kGpuNumbers);
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Request> requests;
    int word = 100 * rank + round, theirs = -1;
    for (auto& [channel, buffer] : sent) {
      gpu.fill(buffer, static_cast<float>(1000 * rank + 10 * round + channel));
      gpu.fill(received[channel], -1.0f);
      requests.push_back(world.receive(bytes_of_numbers(received[channel]), before, channel));
      requests.push_back(world.send(bytes_of_numbers(buffer), next, channel));
    }
    requests.push_back(world.receive(writable_bytes_of(theirs), before, 3));
    requests.push_back(world.send(bytes_of(word), next, 3));
    wait_all(requests);
    EXPECT_EQ(theirs, 100 * before + round);
    for (auto& [channel, buffer] : received) {
      const auto wanted = static_cast<float>(1000 * before + 10 * round + channel);
      EXPECT_EQ(gpu.read(buffer), std::vector<float>(kGpuNumbers, wanted))
          << "rank " << rank << ", channel " << channel;
      gpu.fill(sent[channel], -2.0f);
    }
  }
}

// In groups of two neighbours.
template <class Gpu>
void gather_and_split(Communicator& world, Gpu& gpu) {
  const auto pair = world.split(world.rank() / 2, world.rank());
  pair->connect_gpus();
  const std::span<float> mine = gpu.numbers(kGpuNumbers), all = gpu.numbers(2 * kGpuNumbers);
  gpu.fill(mine, static_cast<float>(world.rank()));
  pair->all_gather(bytes_of_numbers(mine), bytes_of_numbers(all));
  gpu.fill(mine, -1.0f);
  const std::vector<float> got = gpu.read(all);
  EXPECT_EQ(got[3], static_cast<float>(world.rank() / 2 * 2));
  EXPECT_EQ(got[kGpuNumbers + 3], static_cast<float>(world.rank() / 2 * 2 + 1));
  double sum = world.rank();
  world.all_reduce(&sum, 1, Type::F64, Reduction::Sum);
  EXPECT_EQ(sum, world.size() * (world.size() - 1) / 2);
}

}  // namespace penstock::comm
