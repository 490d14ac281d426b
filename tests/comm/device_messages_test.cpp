// SPDX-License-Identifier: Apache-2.0
// Messages of a GPU's memory come behind what both sides have issued, and before what they issue next.
#include "comm/device_messages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "comm/lagging_gpu.h"
#include "comm/share_lane.h"
#include "comm/threads.h"
#include "failure.h"

namespace penstock::comm {
namespace {

constexpr std::size_t kNumbers = 1000;
constexpr int kTimes = 30;

struct Numbers {
  float* values;
  std::size_t count = kNumbers;

  Numbers(testing::LaggingGpu& gpu, std::size_t size = kNumbers)
      : values(reinterpret_cast<float*>(gpu.allocate(size * sizeof(float)))), count(size) {}
  std::span<std::byte> bytes() const { return std::as_writable_bytes(std::span(values, count)); }
};

// What the GPU holds when all that this thread has issued is done.
std::vector<float> read(testing::LaggingGpu& gpu, const Numbers& numbers) {
  std::vector<float> host(numbers.count);
  gpu.copy(host.data(), numbers.values, numbers.bytes().size());
  gpu.synchronize();
  return host;
}

void pause_at_random(int rank, int round) {
  std::this_thread::sleep_for(std::chrono::microseconds((rank * 7919 + round * 104729) % 700));
}

// Sends rounds of numbers from rank 0 to 1, whose buffers are written just before and just after.
void exchange_rounds(testing::LaggingGpu& gpu, Communicator& world,
                     const std::function<Request(std::span<const std::byte>)>& send,
                     const std::function<Request(std::span<std::byte>)>& receive) {
  const Numbers buffer(gpu);
  std::vector<std::vector<float>> arrived(kTimes, std::vector<float>(kNumbers));
  for (int round = 0; round < kTimes; ++round) {
    pause_at_random(world.rank(), round);
    gpu.fill(buffer.values, kNumbers, world.rank() == 0 ? static_cast<float>(round) : -1.0f);
    (world.rank() == 0 ? send(buffer.bytes()) : receive(buffer.bytes())).wait();
    gpu.copy(arrived[round].data(), buffer.values, buffer.bytes().size());
    gpu.fill(buffer.values, kNumbers, -2.0f);
  }
  gpu.synchronize();
  for (int round = 0; round < kTimes; ++round)
    EXPECT_EQ(arrived[round], std::vector<float>(kNumbers, static_cast<float>(round)))
        << "rank " << world.rank();
}

TEST(DeviceMessages, KeepTheOrderOfBothSides) {
  testing::LaggingGpu gpu;
  run_ranks(2, [&](Communicator& world) {
    exchange_rounds(
        gpu, world, [&](auto bytes) { return world.send(bytes, 1, 0); },
        [&](auto bytes) { return world.receive(bytes, 0, 0); });
  });
}

TEST(DeviceMessages, KeepItOverATransportThatReadsTheHostsMemory) {
  testing::LaggingGpu gpu;
  run_ranks(2, [&](Communicator& world) {
    exchange_rounds(
        gpu, world,
        [&](auto bytes) { return send_by_host(bytes, [&](auto host) { return world.send(host, 1, 0); }); },
        [&](auto bytes) {
          return receive_by_host(bytes, [&](auto host) { return world.receive(host, 0, 0); });
        });
  });
}

TEST(DeviceMessages, MayHaveOneSideInTheHostsMemory) {
  testing::LaggingGpu gpu;
  run_ranks(2, [&](Communicator& world) {
    std::vector<float> host(kNumbers);
    const auto host_bytes = std::as_writable_bytes(std::span(host));
    const Numbers buffer(gpu);
    for (int round = 0; round < kTimes; ++round) {
      pause_at_random(world.rank(), round);
      if (world.rank() == 0) {
        gpu.fill(buffer.values, kNumbers, static_cast<float>(round));
        world.send(buffer.bytes(), 1, 0).wait();
        gpu.fill(buffer.values, kNumbers, -1.0f);
        world.receive(buffer.bytes(), 1, 1).wait();
        EXPECT_EQ(read(gpu, buffer), std::vector<float>(kNumbers, static_cast<float>(round) + 0.5f));
      } else {
        world.receive(host_bytes, 0, 0).wait();
        EXPECT_EQ(host, std::vector<float>(kNumbers, static_cast<float>(round)));
        std::ranges::fill(host, static_cast<float>(round) + 0.5f);
        world.send(host_bytes, 0, 1).wait();
        std::ranges::fill(host, -2.0f);
      }
    }
  });
}

TEST(DeviceMessages, ACopyThatFailsEndsBothSides) {
  testing::LaggingGpu gpu;
  gpu.lost = true;
  const std::string text = failure<RunError>([&] {
    run_ranks(2, [&](Communicator& world) {
      const Numbers buffer(gpu);
      std::vector<float> host(kNumbers);
      if (world.rank() == 0) world.send(buffer.bytes(), 1, 0).wait();
      if (world.rank() == 1) world.receive(std::as_writable_bytes(std::span(host)), 0, 0).wait();
    });
  });
  EXPECT_EQ(text, "the GPU fell off the bus");
}

// Whatever uses the GPU next says so; a destructor that threw would end the process without a word.
TEST(DeviceMessages, MayBeDestroyedWhenTheGpuIsLost) {
  testing::LaggingGpu gpu;
  run_ranks(2, [&](Communicator& world) {
    std::vector<float> host(kNumbers);
    const Numbers buffer(gpu);
    if (world.rank() == 0) world.send(std::as_bytes(std::span(host)), 1, 0).wait();
    if (world.rank() == 1) {
      gpu.lost = true;
      receive_by_host(buffer.bytes(), [&](auto room) { return world.receive(room, 0, 0); }).wait();
      gpu.lost = false;
      gpu.synchronize();
    }
    world.barrier();
  });
}

TEST(DeviceMessages, TravelByGathersAndAllToAlls) {
  testing::LaggingGpu gpu;
  constexpr int kRanks = 3;
  run_ranks(kRanks, [&](Communicator& world) {
    const Numbers mine(gpu), all(gpu, kRanks * kNumbers), sent(gpu, kRanks * kNumbers),
        received(gpu, kRanks * kNumbers);
    gpu.fill(mine.values, kNumbers, static_cast<float>(world.rank()));
    for (int to = 0; to < kRanks; ++to)
      gpu.fill(sent.values + to * kNumbers, kNumbers, static_cast<float>(10 * world.rank() + to));
    world.all_gather(mine.bytes(), all.bytes());
    world.all_to_all(sent.bytes(), received.bytes());
    gpu.fill(mine.values, kNumbers, -1.0f);
    gpu.fill(sent.values, kRanks * kNumbers, -1.0f);
    const std::vector<float> gathered = read(gpu, all), exchanged = read(gpu, received);
    for (int from = 0; from < kRanks; ++from) {
      EXPECT_EQ(gathered[from * kNumbers + 5], static_cast<float>(from));
      EXPECT_EQ(exchanged[from * kNumbers + 5], static_cast<float>(10 * from + world.rank()));
    }
  });
}

TEST(DeviceMessages, AreSummedByShareLanesWithTheBitsOfTheHosts) {
  testing::LaggingGpu gpu;
  constexpr int kRanks = 3;
  run_ranks(kRanks, [&](Communicator& world) {
    std::vector<float> host(kNumbers);
    for (std::size_t i = 0; i < kNumbers; ++i)
      host[i] = 1.0f / static_cast<float>(1 + i * kRanks + static_cast<std::size_t>(world.rank()));
    std::vector<SharedBuffer::Share> shares;
    for (std::int64_t rank = 0; rank < kRanks; ++rank) shares.push_back({rank * 300, rank == 2 ? 400 : 300});
    const ShareLane::Limits limits{.piece = 64, .window = 2};
    const auto words = static_cast<std::size_t>(ShareLane::room_for(limits, kRanks, 400));
    const auto summed = [&](float* values, std::span<std::byte> room) {
      ShareLane lane(Type::F32, room, limits, 3, 60);
      const SharedBuffer buffer{reinterpret_cast<std::byte*>(values), shares};
      lane.wait(lane.sum(world, {buffer}, "the sum"), {});
      lane.wait(lane.gather(world, {buffer}, sizeof(float), "the gather"), {});
    };
    const Numbers there(gpu), room_there(gpu, words);
    gpu.copy(there.values, host.data(), there.bytes().size());
    gpu.synchronize();
    std::vector<float> room(words);
    summed(host.data(), std::as_writable_bytes(std::span(room)));
    summed(there.values, room_there.bytes());
    EXPECT_EQ(read(gpu, there), host);
  });
}

}  // namespace
}  // namespace penstock::comm
