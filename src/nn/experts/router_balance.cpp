// SPDX-License-Identifier: Apache-2.0
#include "nn/experts/router_balance.h"

#include <utility>

#include "base/error.h"

namespace penstock::nn {

RouterBalance::RouterBalance(const RouterLossOptions& options, std::int64_t layers, std::int64_t experts,
                             std::int64_t chosen)
    : options_(options),
      layers_(static_cast<std::size_t>(layers)),
      experts_(experts),
      chosen_(chosen),
      rows_(layers_, std::vector<std::int64_t>(static_cast<std::size_t>(experts))) {}

RouterBalance::Window& RouterBalance::window_at(int micro_batch) {
  Window& window = windows_[window_of(micro_batch)];
  window.chosen.resize(place(layers_));
  return window;
}

void RouterBalance::add(int micro_batch, std::size_t layer, const MixtureRecord& record) {
  Window& window = window_at(micro_batch);
  PENSTOCK_CHECK(window.losses.empty(), "all slices of a window go forward before any goes backward");
  for (std::size_t expert = 0; expert < record.order.counts.size(); ++expert) {
    rows_[layer][expert] += record.order.counts[expert];
    window.chosen[place(layer) + expert] += record.order.counts[expert];
  }
  MicroBatch& sums = micro_batches_[micro_batch];
  sums.shares.resize(place(layers_));
  sums.squares.resize(layers_);
  if (options_.balance != 0)
    add_shares(record.scores, record.routing,
               std::span(sums.shares).subspan(place(layer), static_cast<std::size_t>(experts_)));
  if (options_.z != 0) sums.squares[layer] += sum_of_squares(record.routing);
}

RouterBalance::Window& RouterBalance::complete(int micro_batch) {
  Window& window = window_at(micro_batch);
  if (!window.losses.empty()) return window;
  if (options_.sum && options_.balance != 0) options_.sum(window.chosen);
  const auto micro_batches = static_cast<double>(options_.micro_batches);
  const double tokens = static_cast<double>(options_.tokens) * (options_.over_step ? micro_batches : 1);
  const double windows = options_.over_step ? 1 : micro_batches;
  const double factor = options_.balance * static_cast<double>(experts_) /
                        (static_cast<double>(chosen_) * tokens * tokens * windows);
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    RouteLosses& losses = window.losses.emplace_back();
    losses.z = options_.z / (static_cast<double>(options_.tokens) * micro_batches);
    if (options_.balance == 0) continue;
    for (std::int64_t expert = 0; expert < experts_; ++expert)
      losses.balance.push_back(factor * static_cast<double>(window.chosen[place(layer) + expert]));
  }
  return window;
}

const RouteLosses& RouterBalance::losses(int micro_batch, std::size_t layer) {
  return complete(micro_batch).losses[layer];
}

RouterFacts RouterBalance::take() {
  RouterFacts facts{.chosen = std::exchange(rows_, {}),
                    .balance = std::vector<double>(layers_),
                    .z = std::vector<double>(layers_)};
  rows_.assign(layers_, std::vector<std::int64_t>(static_cast<std::size_t>(experts_)));
  for (const auto& [micro_batch, sums] : micro_batches_) {
    const Window& window = windows_.at(window_of(micro_batch));
    for (std::size_t layer = 0; layer < window.losses.size(); ++layer) {
      const RouteLosses& losses = window.losses[layer];
      for (std::size_t expert = 0; expert < losses.balance.size(); ++expert)
        facts.balance[layer] += losses.balance[expert] * sums.shares[place(layer) + expert];
      facts.z[layer] += losses.z * sums.squares[layer];
    }
  }
  windows_.clear();
  micro_batches_.clear();
  return facts;
}

}  // namespace penstock::nn
