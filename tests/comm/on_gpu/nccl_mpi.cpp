// SPDX-License-Identifier: Apache-2.0
// The contract, and what messages between GPUs keep, over NCCL itself: every rank of mpirun runs this
// program and computes on a GPU. Ranks that share one need NCCL_MULTI_RANK_GPU_ENABLE=1 (nccl_on_gpu.py).
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "backend/device.h"
#include "backend/device_memory.h"
#include "backend/memory.h"
#include "comm/contract.h"
#include "comm/gpu_laws.h"
#include "comm/gpus/gpu_ranks.h"
#include "comm/launcher.h"
#include "comm/mpi_program.h"
#include "comm/share_lane.h"

namespace penstock::comm {
namespace {

Communicator* world = nullptr;

// Memory of this rank's GPU, for as long as it lives.
class OnGpu : public ::testing::Test {
 public:
  std::span<float> numbers(std::size_t count) {
    const auto length = static_cast<std::int64_t>(count);
    at::Tensor& block = blocks_.emplace_back(at::full({length}, -3.0, backend::on_device(at::kFloat)));
    return {block.mutable_data_ptr<float>(), count};
  }
  void fill(std::span<float> values, float value) { tensor_of(values).fill_(value); }
  std::vector<float> read(std::span<float> values) {
    const at::Tensor host = backend::to_host(tensor_of(values));
    const auto* const first = host.const_data_ptr<float>();
    return {first, first + values.size()};
  }

 protected:
  void TearDown() override { world->barrier(); }

 private:
  at::Tensor& tensor_of(std::span<float> values) {
    for (at::Tensor& block : blocks_) {
      if (block.const_data_ptr() == values.data()) return block;
    }
    throw std::logic_error("no block of this GPU");
  }

  std::vector<at::Tensor> blocks_;
};

class OverNccl : public ::testing::TestWithParam<Law> {};

TEST_P(OverNccl, Keeps) {
  GetParam().holds(*world);
  world->barrier();
}

INSTANTIATE_TEST_SUITE_P(Contract, OverNccl, ::testing::ValuesIn(contract()),
                         [](const auto& info) { return info.param.name; });

TEST_F(OnGpu, KeepOrderOnEveryChannelAndBothWays) {
  keep_order_on_every_channel_and_both_ways(*world, *this);
}

TEST_F(OnGpu, GatherAndSplit) { gather_and_split(*world, *this); }

// Sums over replicas have the order of the ranks' tree, whatever NCCL would do.
TEST_F(OnGpu, SumsAreTheHosts) {
  constexpr std::int64_t kCount = 1 << 20;
  const ShareLane::Limits limits;
  std::vector<float> host(kCount);
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = 1.0f / static_cast<float>(i % 977 + static_cast<std::size_t>(world->rank()) + 1);
  const std::span<float> sums = numbers(kCount);
  backend::device_memory()->copy(sums.data(), host.data(), sums.size_bytes());
  const std::int64_t room = ShareLane::room_for(limits, world->size(), kCount);
  ShareLane lane(Type::F32, bytes_of_numbers(numbers(static_cast<std::size_t>(room))), limits, 3, 60);
  std::vector<SharedBuffer::Share> shares(static_cast<std::size_t>(world->size()));
  const std::int64_t each = kCount / world->size();
  for (int rank = 0; rank < world->size(); ++rank)
    shares[static_cast<std::size_t>(rank)] = {.begin = rank * each, .count = each};
  lane.wait(lane.sum(*world, {{bytes_of_numbers(sums).data(), shares}}, "sums"), {});
  world->all_reduce(host.data(), kCount, Type::F32, Reduction::Sum);
  const std::vector<float> found = read(sums);
  const auto [begin, count] = shares[static_cast<std::size_t>(world->rank())];
  EXPECT_TRUE(std::equal(host.begin() + begin, host.begin() + begin + count, found.begin() + begin));
}

TEST_F(OnGpu, LongMessagesArriveWhole) {
  constexpr std::size_t kCount = std::size_t{96} << 20;
  const int size = world->size(), next = (world->rank() + 1) % size,
            before = (world->rank() + size - 1) % size;
  const std::span<float> sent = numbers(kCount), received = numbers(kCount);
  fill(sent, static_cast<float>(world->rank()));
  Request coming = world->receive(bytes_of_numbers(received), before, 1);
  Request going = world->send(bytes_of_numbers(sent), next, 1);
  coming.wait();
  going.wait();
  const std::vector<float> got = read(received);
  EXPECT_EQ(std::count(got.begin(), got.end(), static_cast<float>(before)), kCount);
}

int run_tests(Communicator& ranks) {
  backend::require_device();
  backend::take_turn(place_on_machine(ranks.rank()));
  backend::install_allocator();
  const std::optional<Nccl> nccl = load_nccl();
  if (!nccl) throw std::runtime_error("libnccl.so.2 is not there");
  const auto gpus = make_gpu_ranks(ranks, *nccl);
  world = gpus.get();
  world->set_timeout(60);
  world->connect_gpus();
  return run_all_tests(*world);
}

}  // namespace
}  // namespace penstock::comm

int main(int argc, char** argv) {
  return penstock::comm::run_on_ranks(argc, argv, penstock::comm::run_tests);
}
