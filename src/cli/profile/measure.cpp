// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/measure.h"

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "base/error.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "files/file_system.h"
#include "nn/stage.h"
#include "nn/stage_parameters.h"
#include "profile/hardware_text.h"
#include "profile/host_memory.h"
#include "profile/profile.h"
#include "run/hardware_file.h"
#include "sim/costs/layer_cost.h"
#include "train/machine.h"
#include "train/step/optimizer.h"

namespace penstock::cli {
namespace {

// A few layers and their optimizer: measures the last op of a training step.
class OptimizerWork {
 public:
  explicit OptimizerWork(model::Precision precision) : stage_(options(precision)) {
    std::vector<nn::Parameter*> parameters;
    for (nn::Parameter& parameter : stage_.parameters()) {
      parameters.push_back(&parameter);
      numbers_ += static_cast<double>(parameter.weight.numel());
    }
    optimizer_ = std::make_unique<train::Optimizer>(parameters, run::TrainOptions{});
  }
  void operator()() {
    optimizer_->square_sums();
    optimizer_->update(1e-4, 1.0);
    stage_.weights_from_masters();
    stage_.zero_gradients();
  }
  // Bytes as counted by the planner.
  double bytes() const {
    return numbers_ * (sim::kPenstock.gradient_passes + sim::kPenstock.optimizer_bytes);
  }

 private:
  static nn::StageOptions options(model::Precision precision) {
    nn::StageOptions options;
    options.shape = {.layers = 4, .hidden = 512, .ffn = 1376, .heads = 8, .kv_heads = 8, .vocab = 259};
    options.layers = {.first = 0, .count = 4};
    options.first = options.last = false;
    options.precision = precision;
    return options;
  }
  nn::Stage stage_;
  std::unique_ptr<train::Optimizer> optimizer_;
  double numbers_ = 0;
};

// Forwards and backwards of a few layers on two slices, and what the cost model has for them.
class LayersWork {
 public:
  explicit LayersWork(model::Precision precision) : stage_(options(precision)) {
    const auto made = [&] {
      return at::randn({kTokens, shape().hidden}, at::kFloat).to(nn::compute_type(precision));
    };
    hidden_ = made();
    gradient_ = made();
  }

  void operator()() {
    for (int slice = 0; slice < kSlices; ++slice) {
      stage_.forward({.key = {0, slice},
                      .place = {1, kTokens, slice * kTokens},
                      .last_slice = slice + 1 == kSlices,
                      .hidden = hidden_});
    }
    for (int slice = kSlices; slice-- > 0;) stage_.backward({0, slice}, gradient_);
  }

  // Between two kernels, given the seconds of one call.
  static Seconds gap(const sim::Hardware& without_gap, Seconds measured) {
    const model::Shape layer = shape();
    const mesh::Mesh alone;
    Seconds predicted = 0;
    for (int slice = 0; slice < kSlices; ++slice) {
      const sim::LayerCost cost = sim::layer_cost({.shape = layer,
                                                   .mesh = alone,
                                                   .keep = model::keep_of(model::Policy::None),
                                                   .tokens = kTokens,
                                                   .own = kTokens,
                                                   .earlier = static_cast<double>(slice),
                                                   .sequence = kSlices * kTokens,
                                                   .sliced = true},
                                                  without_gap, sim::kPenstock);
      predicted += kLayers * (cost.forward.total() + cost.backward.total());
    }
    const int kernels =
        kLayers * kSlices *
        (sim::forward_kernels(sim::Family::Llama) + sim::backward_kernels(sim::Family::Llama));
    return std::max(0.0, measured - predicted) / kernels;
  }

 private:
  static constexpr int kSlices = 2, kLayers = 4;
  static constexpr Tokens kTokens = 256;

  static model::Shape shape() {
    return {.layers = kLayers, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 4, .vocab = 259};
  }
  static nn::StageOptions options(model::Precision precision) {
    nn::StageOptions options;
    options.shape = shape();
    options.layers = {.first = 0, .count = kLayers};
    options.first = options.last = false;
    options.precision = precision;
    options.keep.assign(kLayers, model::keep_of(model::Policy::None));
    return options;
  }

  nn::Stage stage_;
  at::Tensor hidden_, gradient_;
};

profile::Request request_of(const MeasureOptions& options) {
  profile::Request request;
  request.precision = options.precision;
  request.effort.budget = options.budget / 2;  // everything is measured twice
  request.effort.least = options.budget > 0 ? 4 : 1;
  request.disk_folder = options.disk_folder;
  request.open_unnamed = [](const std::string& folder) { return files::file_system().open_unnamed(folder); };
  if (!options.quick) return request;
  request.other_precision = false;
  request.effort = {.budget = std::min(options.budget, 0.04) / 2, .least = 3, .late = 6};
  return request;
}

// A card computes after the call that asks for it has returned, and has other copies and links.
void require_processor() {
  if (backend::compute_device().is_cpu()) return;
  throw InputError(
      "the speeds of a card are not measured yet: say what would be chosen by them (schedule.slices, "
      "schedule.chunks, parallel.cp_mode, schedule.exchange, schedule.forward and the like)");
}

}  // namespace

std::string measured_as_rank(const MeasureOptions& options, comm::Communicator& world,
                             const std::string& transport, const SayMeasured& say) {
  require_processor();
  at::set_num_threads(options.threads);
  OptimizerWork optimizer(options.precision);
  profile::Request request = request_of(options);
  request.optimizer = [&] { optimizer(); };
  request.optimizer_bytes = optimizer.bytes();
  LayersWork layers(options.precision);
  request.layers = [&] { layers(); };
  profile::Measurements measured = profile::measure_machine(world, request, [&](const std::string& what) {
    if (world.rank() == 0) say(what);
  });
  if (world.rank() != 0) return {};
  const train::Host machine = train::this_host();
  const profile::HostMemory memory = profile::host_memory();
  const profile::MachineFacts facts{.description = machine.processor + ", " + machine.instructions,
                                    .ranks = world.size(),
                                    .threads = options.threads,
                                    .transport = transport,
                                    .memory_bytes = memory.total,
                                    .used_bytes = memory.used};
  const std::string without_gap = profile::hardware_text(options.name, facts, measured);
  measured.gap = LayersWork::gap(run::parse_hardware_text(without_gap, "what was measured").hardware,
                                 measured.layer_seconds);
  return profile::hardware_text(options.name, facts, measured);
}

std::string measured_here(const MeasureOptions& options, int ranks, const SayMeasured& say) {
  if (ranks == 1) return measured_as_rank(options, *comm::make_single(), "alone", say);
  std::string text;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const std::string mine = measured_as_rank(options, world, "threads of one process", say);
    if (world.rank() == 0) text = mine;
  });
  return text;
}

}  // namespace penstock::cli
