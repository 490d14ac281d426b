// SPDX-License-Identifier: Apache-2.0
#include "train/step/gather_load.h"

#include <algorithm>

namespace penstock::train {

ExpertLoad gather_load(const run::Run& run, std::map<int, nn::Stage>& stages, comm::World world) {
  const auto layers = static_cast<std::size_t>(run.shape().layers);
  const auto experts = static_cast<std::size_t>(run.shape().experts);
  const auto ranks = static_cast<std::size_t>(run.mesh.ranks_per_stage());
  const std::size_t rank = static_cast<std::size_t>(world->rank()) % ranks;
  std::vector<std::int64_t> rows(layers * experts);
  std::vector<double> losses(2 * layers * ranks);  // [balance, z][layer][rank]; 0 for other ranks
  for (auto& [number, stage] : stages) {
    const nn::RouterFacts facts = stage.take_router_facts();
    for (std::size_t i = 0; i < facts.chosen.size(); ++i) {
      const std::size_t layer = static_cast<std::size_t>(run.layers[number].first) + i;
      std::ranges::copy(facts.chosen[i], rows.begin() + static_cast<std::ptrdiff_t>(layer * experts));
      losses[layer * ranks + rank] = facts.balance[i];
      losses[(layers + layer) * ranks + rank] = facts.z[i];
    }
  }
  comm::as_part_of("the load of the experts", [&] {
    world->all_reduce(rows.data(), rows.size(), comm::Type::I64, comm::Reduction::Sum);
    world->all_reduce(losses.data(), losses.size(), comm::Type::F64, comm::Reduction::Sum);
  });
  ExpertLoad load;
  for (auto row = rows.begin(); row != rows.end(); row += static_cast<std::ptrdiff_t>(experts))
    load.rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(experts));
  for (std::size_t i = 0; i < losses.size(); ++i)
    (i < layers * ranks ? load.balance_loss : load.z_loss) += losses[i];
  return load;
}

}  // namespace penstock::train
