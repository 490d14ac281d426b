// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <algorithm>

#include "model/layer_split.h"

namespace penstock::plan {
namespace {

// Layers of the last stage; the others are even, and the first `more` of them have one more than `each`.
struct Split {
  std::int64_t last = 0, each = 0, more = 0;
};

Split split_of(const Workload& workload, const Layout& layout) {
  const std::int64_t layers = workload.model.shape.layers, stages = stages_of(layout);
  const std::int64_t last = model::last_stage_layers(layers, stages, layout.output);
  if (stages == 1) return {.last = layers};
  return {last, (layers - last) / (stages - 1), (layers - last) % (stages - 1)};
}

// How many of the first `more` stages are on the rank-th of `devices`, dealt out round-robin.
std::int64_t share_of(std::int64_t more, int rank, int devices) {
  return more > rank ? (more - rank - 1) / devices + 1 : 0;
}

// How many of `more` layers, one for a stage, a device gets besides those that all stages have, if each goes
// to the device with the least time so far, then to the first stage (level_layers). Tensor ranks exchange
// embeddings, so that the first stage takes a little longer than others and comes last. `ahead`: by how many
// layers the device of the last stage, whose output layer counts as some, is ahead at first. Say 8 layers
// more for p = 4 and v = 3, ahead 1.2, no tensor ranks: one each for devices 0, 1 and 2; again, and now the
// last device, at 1.2, has the least time; then 0.
std::int64_t levelled_share(const Layout& layout, std::int64_t more, double ahead, int rank) {
  const int p = layout.mesh.pipeline, v = layout.chunks, end = last_device(layout);
  const bool back = is_v_shaped(layout.schedule), first_is_last = layout.mesh.tensor > 1;
  std::int64_t own = 0;
  const auto give = [&](std::int64_t devices, int place) {  // one each; `place`: of the rank among them
    const std::int64_t given = std::min(more, devices);
    own += place >= 0 && place < given;
    more -= given;
  };
  int left_of_end = back ? (first_is_last ? 0 : 1) : v - 1;  // stages but the last
  const auto give_end = [&] { --left_of_end, ahead += 1, give(1, rank == end ? 0 : -1); };
  const auto give_first = [&] { give(1, rank == 0 ? 0 : -1); };
  for (int round = 0; round < v; ++round) {
    while (left_of_end > 0 && (ahead < round || (back && ahead == round))) give_end();
    if (back) {
      give(p - 1, round == 0 ? rank - 1 : p - 1 - rank);
    } else if (first_is_last) {
      give(p - 2, rank - 1);
      if (round < v - 1) give_first();
    } else {
      give(p - 1, rank);
    }
  }
  while (left_of_end > 0) give_end();
  give_first();
  return own;
}

std::int64_t layers_of_stage(const Workload& workload, const Layout& layout, std::int64_t stage) {
  const auto [first, last] = *layout.ends;
  const std::int64_t stages = stages_of(layout), all = workload.model.shape.layers + first + last;
  return all / stages + (stage < all % stages ? 1 : 0) - (stage == 0 ? first : 0) -
         (stage == stages - 1 ? last : 0);
}

// The chunk-th stage of a device: round-robin over the devices, or there and back if V-shaped.
std::int64_t stage_of(const Layout& layout, int rank, int chunk) {
  const int p = layout.mesh.pipeline;
  return is_v_shaped(layout.schedule) && chunk == 1 ? 2 * p - 1 - rank : rank + std::int64_t{chunk} * p;
}

std::int64_t layers_of_device(const Workload& workload, const Layout& layout, const Split& split, int rank) {
  const int p = layout.mesh.pipeline, v = layout.chunks, end = last_device(layout);
  if (p == 1) return workload.model.shape.layers;
  if (layout.ends) {
    std::int64_t layers = 0;
    for (int chunk = 0; chunk < v; ++chunk)
      layers += layers_of_stage(workload, layout, stage_of(layout, rank, chunk));
    return layers;
  }
  const std::int64_t own = rank == end ? split.each * (v - 1) + split.last : split.each * v;
  if (layout.output > 0) {
    const double ahead = static_cast<double>(split.last - split.each) + layout.output;
    return own + levelled_share(layout, split.more, ahead, rank);
  }
  if (!is_v_shaped(layout.schedule)) return own + share_of(split.more, rank, p);
  return own + (rank < split.more ? 1 : 0) + (2 * p - 1 - rank < split.more ? 1 : 0);
}

}  // namespace

double output_in_layers(const Workload& workload, const Layout& layout) {
  static const sim::Hardware hardware = sim::assumed_hardware();
  const sim::LayerSlice slice = average_slice(workload, layout);
  const sim::LayerCost layer = sim::layer_cost(slice, hardware, sim::kPenstock);
  const double columns = static_cast<double>(workload.model.shape.vocab) / layout.mesh.tensor;
  return sim::output_layer(slice, hardware, sim::kPenstock, columns) /
         (layer.forward.total() + layer.backward.total() + layer.recompute.total());
}

std::int64_t chunk_layers(const Workload& workload, const Layout& layout) {
  if (layout.ends && stages_of(layout) > 1) {
    std::int64_t most = 0;
    for (std::int64_t stage = 0; stage < stages_of(layout); ++stage)
      most = std::max(most, layers_of_stage(workload, layout, stage));
    return most;
  }
  const Split split = split_of(workload, layout);
  return std::max(split.last, split.each + (split.more > 0 ? 1 : 0));
}

std::int64_t device_layers(const Workload& workload, const Layout& layout, int rank) {
  return layers_of_device(workload, layout, split_of(workload, layout), rank);
}

// Extra layers go to the first device or the second first, and back in a V.
int fullest_rank(const Workload& workload, const Layout& layout) {
  const int p = layout.mesh.pipeline;
  const bool back = last_device(layout) == 0;
  const int one = back ? std::min(1, p - 1) : 0, other = back ? p - 1 : std::min(1, p - 1);
  const Split split = split_of(workload, layout);
  if (one == other || other == last_device(layout) || (!layout.ends && split.more == 0)) return one;
  const std::int64_t layers = layers_of_device(workload, layout, split, one);
  return layers_of_device(workload, layout, split, other) > layers ? other : one;
}

}  // namespace penstock::plan
