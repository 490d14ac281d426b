// SPDX-License-Identifier: Apache-2.0
#include "plan/step_cost.h"

#include <algorithm>
#include <cmath>

#include "plan/layout_memory.h"
#include "plan/replica_cost.h"
#include "sim/costs/collectives.h"
#include "sim/costs/kernel_cost.h"

namespace penstock::plan {
namespace {

struct Case : LayoutCase {
  const SliceCost& costs;

  double units() const { return m() * layout.slices * layout.chunks; }  // slice-chunks per step and device
  double tokens() const { return group_tokens(workload, layout); }
  sim::LayerSlice slice() const { return average_slice(workload, layout); }
  double hidden_bytes() const { return number_bytes() * tokens() / t() * as_double(shape().hidden); }
};

// Work of a device per step.
Seconds seconds_of(const Case& c, int rank);

// The device of the last stage, or the other one with most layers if that is slower.
int slowest_device(const Case& c) {
  const int end = last_device(c.layout), other = fullest_rank(c.workload, c.layout);
  return seconds_of(c, end) >= seconds_of(c, other) ? end : other;
}

// Under vocabulary parallelism every device has 1/p of the columns.
Seconds edges_of_step(const Case& c, int rank) {
  const double slices = c.m() * c.layout.slices;
  if (c.layout.vocabulary_parallel && c.p() > 1) {
    const Seconds output = sim::output_layer(c.slice(), c.hardware, c.engine, c.vocab() / c.t() / c.p());
    return slices *
           (output + visit_messages(c.hardware, c.layout.mesh, c.hidden_bytes(), c.workload.precision));
  }
  return slices *
         ((rank == 0 ? c.costs.embedding : 0) + (rank == last_device(c.layout) ? c.costs.output : 0));
}

Seconds seconds_of(const Case& c, int rank) {
  const sim::LayerCost& layer = c.costs.layer;
  const Seconds of_layer = layer.forward.total() + layer.backward.total() + c.costs.again.total();
  return c.m() * c.layout.slices * as_double(device_layers(c.workload, c.layout, rank)) * of_layer +
         edges_of_step(c, rank);
}

// Of a schedule whose devices run w = min(n, p) consecutive slices at the same time, in lockstep: the mean of
// the longest of w, Σ max/n − 1, where slice i of n has (2i − 1)/n of the mean attention.
double longest_of_window(double slices, double devices) {
  const double window = std::min(slices, devices);
  return (window - 1) * (2 * slices - window) / (slices * slices);
}

// Overhead of unequal slices, as a share of attention. With exchange devices run in lockstep and a slot takes
// as long as its slowest device: paired about 1 + 1/n of the mean, levelled 1 (tables of docs/slimpipe.md,
// "Context exchange"). Without it, seq1f1b runs in lockstep, as a forward on one device meets a backward of
// an unrelated slice on the next. Visits of the vocabulary are barriers, which matter less where most chunks
// are not the last (by simulation at p 2 to 8, v 1 to 5 and n p to 4p). Else waits grow with the square of
// attention's share of the work, and below p, n makes no difference (by simulation at p 4 to 16 and n 4 to
// 64, within a factor of two).
double attention_imbalance(const Layout& layout, double share) {
  if (layout.slices == 1 || layout.mesh.pipeline == 1) return 0;
  if (layout.exchange == ExchangeMode::Paired) return 1.25 / layout.slices;
  if (layout.exchange == ExchangeMode::Levelled) return 0;
  if (layout.schedule == ScheduleKind::Seq1F1B) return longest_of_window(layout.slices, layout.mesh.pipeline);
  const double others = layout.mesh.pipeline - 1.0;
  if (layout.vocabulary_parallel) return (0.4 + 1.1 / layout.chunks) * others / (layout.slices + others);
  return share * share * 0.95 * others / std::max(layout.slices, layout.mesh.pipeline);
}

// Per layer of a slot that exchanges: K and V of about (p−1)/6 slices if paired, a third more if levelled,
// and Q and O of the slice (h numbers per token each, in parts). Overlaps with the layer's attention.
Seconds exchange_of_step(const Case& c, double layers, Seconds attention) {
  if (c.layout.exchange == ExchangeMode::Off) return 0;
  const bool paired = c.layout.exchange == ExchangeMode::Paired;
  const double slices = (c.p() - 1) / 6 * (paired ? 1.0 : 4.0 / 3);
  const double keys = c.number_bytes() * as_double(model::key_value_bytes(c.held(), 1)),
               queries = 2 * c.number_bytes() * as_double(c.shape().query_width());
  const double bytes = c.tokens() / c.t() * (slices * keys + queries);
  return exchange_share(pipeline_shape(c.workload, c.layout), paired) * c.units() * layers * 3 *
         std::max(0.0, stage_transfer(c.hardware, c.layout.mesh, bytes) - attention / 3);
}

// From a stage to the next, in the mean over the pipeline: some are within a node.
Seconds mean_transfer(const sim::Hardware& hardware, const mesh::Mesh& mesh, double bytes) {
  Seconds sum = 0;
  for (int rank = 1; rank < mesh.pipeline; ++rank)
    sum += sim::message(hardware, sim::in_one_node(hardware, mesh, rank - 1, rank), bytes);
  return sum / (mesh.pipeline - 1);
}

// Transfers that do not overlap with compute add to every slot; without sequence parallelism each also
// gathers its t parts.
Seconds transfers_of_step(const Case& c) {
  const auto& layout = c.layout;
  if (layout.mesh.pipeline == 1) return 0;
  const Seconds one = c.engine.exact ? mean_transfer(c.hardware, layout.mesh, c.hidden_bytes())
                                     : stage_transfer(c.hardware, layout.mesh, c.hidden_bytes());
  const double exposed = c.engine.pipeline_exposed * c.hardware.efficiency.pipeline_exposed;
  const PipelineShape shape = pipeline_shape(c.workload, layout);
  if (c.engine.pipeline_overlap)
    return exposed * exposed_transfers(layout.schedule, shape, c.engine.exact) * one;
  const Seconds gather = c.engine.sequence_parallel ? 0 : sim::hidden_pass(c.slice(), c.hardware, c.engine);
  return (c.units() + c.p() - 1) * 2 * exposed * (one + gather);
}

// A record's copy can overlap one F + B in the steady state, one F in warm-up and one B in cool-down.
Seconds copies_of_step(const Case& c, double layers, Seconds forward, Seconds backward) {
  if (c.layout.offload <= 0) return 0;
  const double warm_up = records_in_flight(c.layout.schedule, pipeline_shape(c.workload, c.layout), 0);
  const double leaving = model::offloaded_records(warm_up);
  if (leaving == 0) return 0;
  const double bytes = c.layout.offload * record_size(c.workload, c.layout, layers).leaving;
  const Seconds copy = bytes / c.hardware.copy_rate(c.layout.mesh.world());
  return (c.units() - warm_up) * std::max(0.0, copy - forward - backward) +
         leaving * (std::max(0.0, copy - forward) + std::max(0.0, copy - backward));
}

// The other devices' mean slot, by that of the slowest device with its `layers` of a stage: the first and the
// last of its slots wait for one of each.
Seconds slot_of_others(const Case& c, double layers, Seconds slot) {
  if (c.p() == 1) return slot;
  const double own = layers * c.layout.chunks, all = as_double(c.shape().layers);
  return slot * (all - own) / (c.p() - 1) / own;
}

sim::LayerTerms times(sim::LayerTerms terms, double factor) {
  return {terms.matrix * factor,  terms.attention * factor, terms.elementwise * factor, terms.tensor * factor,
          terms.context * factor, terms.expert * factor,    terms.gaps * factor};
}

// Mean over the layers; `own` holds for the share of layers to which `keep` applies.
sim::LayerTerms recomputation(const sim::LayerTerms& own, const Layout& layout, sim::LayerSlice slice,
                              const sim::Hardware& hardware, const sim::Engine& engine) {
  sim::LayerTerms mean = times(own, layout.recomputed);
  if (layout.recomputed == 1 || layout.others == keep_of(model::Policy::None)) return mean;
  slice.keep = layout.others;
  return mean += times(sim::layer_cost(slice, hardware, engine).recompute, 1 - layout.recomputed);
}

}  // namespace

SliceCost slice_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                     const sim::Engine& engine) {
  const sim::LayerSlice slice = average_slice(workload, layout);
  const double vocab = LayoutCase{workload, layout, hardware, engine}.vocab();
  const sim::LayerCost layer = sim::layer_cost(slice, hardware, engine);
  return {layer, recomputation(layer.recompute, layout, slice, hardware, engine),
          sim::output_layer(slice, hardware, engine, vocab / layout.mesh.tensor),
          sim::embedding(slice, hardware, engine), sim::weight_backward(slice, hardware, engine)};
}

StepCost step_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                   const sim::Engine& engine) {
  if (layout.whole_hidden && engine.sequence_parallel) {
    sim::Engine other = engine;
    other.sequence_parallel = false;
    return step_cost(workload, layout, hardware, other);
  }
  return step_cost(workload, layout, hardware, engine, slice_cost(workload, layout, hardware, engine));
}

StepCost step_cost(const Workload& workload, const Layout& layout, const sim::Hardware& hardware,
                   const sim::Engine& engine, const SliceCost& slice) {
  const Case c{{workload, layout, hardware, engine}, slice};
  const sim::LayerCost& layer = slice.layer;
  const int device = slowest_device(c);
  const double layers = as_double(device_layers(workload, layout, device)) / layout.chunks;  // of a stage
  sim::LayerTerms both = layer.forward;
  both += layer.backward;

  StepCost cost;
  cost.slot_layers = layers;
  cost.forward_slot = layers * layer.forward.total();
  const sim::LayerTerms& again = slice.again;
  cost.backward_slot = layers * (layer.backward.total() + again.total());
  cost.work = times(both, layers * c.units());
  if (splits_backward(layout.schedule)) {
    cost.backward_slot += layers * layer.split;
    cost.work.tensor += layers * c.units() * layer.split;
  }
  cost.recomputation = layers * c.units() * again.total();
  cost.output_layer = edges_of_step(c, device);
  const double attention = cost.work.attention + layers * c.units() * again.attention;
  const double share = attention / (cost.work.total() + cost.recomputation);
  cost.imbalance = attention * attention_imbalance(layout, share);
  cost.exchange = exchange_of_step(c, layers, both.attention);
  const Seconds slot = cost.forward_slot + cost.backward_slot, weights = layers * slice.weights;
  const SlotShares shares{cost.forward_slot / slot, (cost.backward_slot - weights) / slot, weights / slot};
  const double ramp = ramp_slots(layout.schedule, pipeline_shape(workload, layout), shares);
  cost.bubble = ramp * (engine.exact ? slot_of_others(c, layers, slot) : slot);
  if (layout.mesh.pipeline > 1)
    cost.bubble += engine.pipeline_waits * (cost.work.total() + cost.recomputation);
  cost.transfers = transfers_of_step(c);
  cost.copies = copies_of_step(c, layers, cost.forward_slot, cost.backward_slot);
  cost.gradients = layout.sharded.on
                       ? shared_weights_of_step(c, cost.work.total() + cost.recomputation + cost.output_layer)
                       : gradients_of_step(c, cost.forward_slot, cost.backward_slot);
  cost.optimizer = optimizer_of_step(c);
  cost.stragglers = hardware.straggling(layout.mesh.world()) * cost.total();
  cost.fixed = 1e-3 * (hardware.kernels.step_ms + engine.step_ms);
  return cost;
}

std::array<std::pair<std::string_view, Seconds>, 18> terms_of(const StepCost& cost) {
  return {{{"matrix products", cost.work.matrix},
           {"attention", cost.work.attention},
           {"elementwise", cost.work.elementwise},
           {"tensor-parallel traffic", cost.work.tensor},
           {"context-parallel traffic", cost.work.context},
           {"expert traffic", cost.work.expert},
           {"gaps between kernels", cost.work.gaps},
           {"recomputation", cost.recomputation},
           {"output layer and loss", cost.output_layer},
           {"unequal slices", cost.imbalance},
           {"context exchange", cost.exchange},
           {"bubble", cost.bubble},
           {"transfers", cost.transfers},
           {"offloading copies", cost.copies},
           {"gradient sums", cost.gradients},
           {"optimizer", cost.optimizer},
           {"slowest node", cost.stragglers},
           {"fixed", cost.fixed}}};
}

Flops model_flops(const Workload& workload) {
  const auto& shape = workload.model.shape;
  const double tokens = as_double(workload.global_batch * workload.seq_len);
  const double gelu = workload.model.family == Family::Gpt
                          ? 6.0 * as_double(shape.layers * shape.hidden * shape.ffn * shape.experts_per_token)
                          : 0.0;
  return tokens * (model::flops_per_token(shape, workload.seq_len) - gelu);
}

}  // namespace penstock::plan
