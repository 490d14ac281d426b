// SPDX-License-Identifier: Apache-2.0
#include "train/record/gather_events.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace penstock::train {

namespace {

std::size_t compute_ops(const schedule::DeviceProgram& list) {
  return static_cast<std::size_t>(std::ranges::count_if(list.ops, [](const schedule::Op& op) {
    return schedule::lane_of(op.kind) == schedule::Lane::Compute;
  }));
}

// Gathers each rank's list, of size_of(rank) entries, on rank 0.
template <class Entry, class Ranks, class SizeOf>
std::vector<std::vector<Entry>> gather_lists(const std::vector<Entry>& mine, Ranks ranks, SizeOf&& size_of) {
  constexpr int channel = static_cast<int>(schedule::Channel::Control);
  if (ranks->rank() != 0) {
    ranks->send(std::as_bytes(std::span(mine)), 0, channel).wait();
    return {};
  }
  std::vector<std::vector<Entry>> lists{mine};
  for (int rank = 1; rank < ranks->size(); ++rank) {
    std::vector<Entry> entries(size_of(static_cast<std::size_t>(rank)));
    ranks->receive(std::as_writable_bytes(std::span(entries)), rank, channel).wait();
    lists.push_back(std::move(entries));
  }
  return lists;
}

}  // namespace

schedule::Timeline gather_events(const schedule::Program& program, const std::vector<schedule::Event>& mine,
                                 const std::vector<schedule::ExchangeSpan>& exchange,
                                 comm::Pipeline pipeline) {
  schedule::Timeline timeline{
      gather_lists(mine, pipeline, [&](std::size_t rank) { return program.devices[rank].ops.size(); })};
  if (program.exchanges.empty()) return timeline;
  const auto counts =
      gather_lists(std::vector{exchange.size()}, pipeline, [](std::size_t) { return std::size_t{1}; });
  timeline.exchanges =
      gather_lists(exchange, pipeline, [&](std::size_t rank) { return counts[rank].front(); });
  return timeline;
}

std::vector<std::vector<schedule::Event>> gather_rank_events(const schedule::Program& program,
                                                             const std::vector<schedule::Event>& mine,
                                                             const mesh::Mesh& mesh, comm::World world) {
  if (mesh.ranks_per_stage() == 1) return {};
  return gather_lists(mine, world, [&](std::size_t rank) {
    return program.devices[mesh.coordinates_of(static_cast<std::int64_t>(rank)).pipeline].ops.size();
  });
}

std::vector<std::vector<run::OpMemory>> gather_memory(const schedule::Program& program,
                                                      const std::vector<run::OpMemory>& mine,
                                                      comm::Pipeline pipeline) {
  return gather_lists(mine, pipeline, [&](std::size_t rank) { return compute_ops(program.devices[rank]); });
}

std::vector<std::vector<Seconds>> gather_processor_seconds(const schedule::Program& program,
                                                           const std::vector<Seconds>& mine,
                                                           comm::Pipeline pipeline) {
  return gather_lists(mine, pipeline, [&](std::size_t rank) { return program.devices[rank].ops.size(); });
}

std::vector<BytesByCategory> gather_peaks(const mesh::Mesh& mesh, const backend::Ledger& mine,
                                          const AwayBytes& away, comm::World world) {
  constexpr std::array kMore{"total", "host", "disk"};
  using Peaks = std::array<std::int64_t, model::kTensorCategories + kMore.size()>;
  Peaks own{};
  for (int i = 0; i < model::kTensorCategories; ++i) own[i] = mine.peak(static_cast<model::Category>(i));
  const std::array more{mine.peak_total(), away.host, away.disk};
  std::ranges::copy(more, own.begin() + model::kTensorCategories);
  std::vector<Peaks> all(static_cast<std::size_t>(world->size()));
  world->all_gather(comm::bytes_of(own), std::as_writable_bytes(std::span(all)));

  const auto total = [](const Peaks& rank) { return rank[model::kTensorCategories]; };
  std::vector<BytesByCategory> peaks;
  for (std::int64_t device = 0; device < mesh.pipeline; ++device) {
    const auto first = all.begin() + device * mesh.ranks_per_stage();
    const Peaks& rank =
        *std::max_element(first, first + mesh.ranks_per_stage(),
                          [&](const Peaks& a, const Peaks& b) { return total(a) < total(b); });
    BytesByCategory named;
    for (int i = 0; i < model::kTensorCategories; ++i) {
      named.emplace_back(model::name_of(static_cast<model::Category>(i)), rank[i]);
    }
    for (std::size_t i = 0; i < kMore.size(); ++i)
      named.emplace_back(kMore[i], rank[model::kTensorCategories + i]);
    peaks.push_back(std::move(named));
  }
  return peaks;
}

}  // namespace penstock::train
