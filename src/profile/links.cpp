// SPDX-License-Identifier: Apache-2.0
#include "profile/links.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "backend/copy.h"
#include "backend/device.h"
#include "base/clock.h"
#include "comm/rank_names.h"

namespace penstock::profile {
namespace {

constexpr int kChannel = 3;
constexpr int kRounds = 40;

void there_and_back(comm::Communicator& world, int peer, bool first, std::span<std::byte> buffer) {
  const auto send = [&] {
    comm::Request request = world.send(buffer, peer, kChannel);
    request.wait();
  };
  const auto receive = [&] {
    comm::Request request = world.receive(buffer, peer, kChannel);
    request.wait();
  };
  if (first) send();
  receive();
  if (!first) send();
}

// Half the median of a fixed number of round trips: both sides must make the same number, so the clock cannot
// decide it.
Seconds one_way(comm::Communicator& world, int peer, bool first, std::size_t bytes) {
  const at::Tensor room = at::zeros({static_cast<std::int64_t>(bytes)}, backend::on_device(at::kByte));
  const std::span buffer(static_cast<std::byte*>(room.mutable_data_ptr()), bytes);
  std::vector<Seconds> rounds;
  there_and_back(world, peer, first, buffer);
  for (int round = 0; round < kRounds; ++round) {
    const Seconds start = steady_seconds();
    there_and_back(world, peer, first, buffer);
    backend::synchronize();
    rounds.push_back(steady_seconds() - start);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2] / 2;
}

}  // namespace

MessagePartners message_partners(const std::vector<std::string>& hosts, int rank) {
  const std::vector<std::vector<int>> ranks = comm::ranks_by_host(hosts);
  std::size_t host = 0;
  while (hosts[ranks[host].front()] != hosts[rank]) ++host;
  const auto place = static_cast<std::size_t>(std::ranges::find(ranks[host], rank) - ranks[host].begin());
  const auto rank_at = [&](std::size_t of_host, std::size_t at) {
    return of_host < ranks.size() && at < ranks[of_host].size() ? ranks[of_host][at] : -1;
  };
  return {.here = rank_at(host, place ^ 1), .away = rank_at(host ^ 1, place)};
}

Numbers measure_messages(Recorder& recorder, const Sizes& sizes, int partner) {
  comm::Communicator& world = recorder.world();
  Numbers seconds;
  for (const double kb : sizes.message_kb) {
    world.barrier();
    double mine = 0;
    if (partner >= 0)
      mine = one_way(world, partner, world.rank() < partner, static_cast<std::size_t>(1000 * kb));
    world.all_reduce(&mine, 1, comm::Type::F64, comm::Reduction::Max);
    seconds.push_back(std::max(mine, seconds.empty() ? 0.0 : seconds.back()));
  }
  return seconds;
}

}  // namespace penstock::profile
