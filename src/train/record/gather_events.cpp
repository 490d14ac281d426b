// SPDX-License-Identifier: Apache-2.0
#include "train/record/gather_events.h"

#include <algorithm>
#include <array>
#include <string>

#include "train/record/gather_lists.h"

namespace penstock::train {

schedule::Timeline gather_events(const schedule::Program& program, const std::vector<schedule::Event>& mine,
                                 const std::vector<schedule::ExchangeSpan>& exchange,
                                 comm::Pipeline pipeline) {
  schedule::Timeline timeline{gather_lists(mine, pipeline)};
  if (!program.exchanges.empty()) timeline.exchanges = gather_lists(exchange, pipeline);
  return timeline;
}

std::vector<std::vector<schedule::Event>> gather_rank_events(const std::vector<schedule::Event>& mine,
                                                             const mesh::Mesh& mesh, comm::World world) {
  if (mesh.ranks_per_stage() == 1) return {};
  return gather_lists(mine, world);
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

  std::vector<BytesByCategory> peaks;
  for (std::int64_t device = 0; device < mesh.pipeline; ++device) {
    Peaks greatest{};
    for (std::int64_t rank = 0; rank < mesh.ranks_per_stage(); ++rank) {
      const Peaks& of_rank = all[static_cast<std::size_t>(device * mesh.ranks_per_stage() + rank)];
      std::ranges::transform(greatest, of_rank, greatest.begin(), std::ranges::max);
    }
    BytesByCategory named;
    for (int i = 0; i < model::kTensorCategories; ++i) {
      named.emplace_back(model::name_of(static_cast<model::Category>(i)), greatest[i]);
    }
    for (std::size_t i = 0; i < kMore.size(); ++i)
      named.emplace_back(kMore[i], greatest[model::kTensorCategories + i]);
    peaks.push_back(std::move(named));
  }
  return peaks;
}

}  // namespace penstock::train
