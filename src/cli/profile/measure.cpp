// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/measure.h"

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/gpu_messages.h"
#include "comm/launcher.h"
#include "comm/mpi.h"
#include "comm/single.h"
#include "comm/texts.h"
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
#include "train/machine_probe.h"
#include "train/step/optimizer.h"

namespace penstock::cli {
namespace {

constexpr Flops kFast = 5e12;  // FLOP/s of matmuls above which a device gets large shapes

// Shapes of the layers on which the optimizer and the gaps between kernels are measured.
model::Shape of_optimizer(bool large) {
  if (large) return {.layers = 2, .hidden = 4096, .ffn = 14336, .heads = 32, .kv_heads = 32, .vocab = 259};
  return {.layers = 4, .hidden = 512, .ffn = 1376, .heads = 8, .kv_heads = 8, .vocab = 259};
}
model::Shape of_layers(bool large) {
  if (large) return {.layers = 4, .hidden = 2048, .ffn = 5632, .heads = 16, .kv_heads = 16, .vocab = 259};
  return {.layers = 4, .hidden = 256, .ffn = 704, .heads = 4, .kv_heads = 4, .vocab = 259};
}

// A few layers and their optimizer, to measure the last op of a training step.
class OptimizerWork {
 public:
  OptimizerWork(model::Precision precision, const model::Shape& shape) : stage_(options(precision, shape)) {
    std::vector<nn::Parameter*> parameters;
    for (nn::Parameter& parameter : stage_.parameters()) parameters.push_back(&parameter);
    optimizer_ = std::make_unique<train::Optimizer>(parameters, run::TrainOptions{});
  }
  void operator()() {
    optimizer_->square_sums();
    optimizer_->update(1e-4, 1.0);
    stage_.weights_from_masters();
    stage_.zero_gradients();
  }
  // Bytes of a pass, as the planner counts them.
  static double bytes(const model::Shape& shape) {
    return parameters_of(shape) * (sim::kPenstock.gradient_passes + sim::kPenstock.optimizer_bytes);
  }
  static std::string words(const model::Shape& shape) {
    const std::string width = std::to_string(shape.hidden);
    return number(parameters_of(shape) / 1e6, 1) + " M parameters in matrices of " + width + " x " + width;
  }

 private:
  static double parameters_of(const model::Shape& shape) {
    return static_cast<double>(shape.layers * model::layer_parameters(shape));
  }
  static nn::StageOptions options(model::Precision precision, const model::Shape& shape) {
    nn::StageOptions options;
    options.shape = shape;
    options.layers = {.first = 0, .count = options.shape.layers};
    options.first = options.last = false;
    options.precision = precision;
    return options;
  }
  nn::Stage stage_;
  std::unique_ptr<train::Optimizer> optimizer_;
};

// Forwards and backwards of a few layers on two slices, and the cost model's time for them.
class LayersWork {
 public:
  LayersWork(model::Precision precision, const model::Shape& shape, Tokens tokens)
      : tokens_(tokens), stage_(options(precision, shape, tokens)) {
    const auto made = [&] {
      return at::randn({tokens, shape.hidden}, backend::on_device(at::kFloat))
          .to(nn::compute_type(precision));
    };
    hidden_ = made();
    gradient_ = made();
  }

  void operator()() {
    for (int slice = 0; slice < kSlices; ++slice) {
      stage_.forward({.key = {0, slice},
                      .place = {1, tokens_, slice * tokens_},
                      .last_slice = slice + 1 == kSlices,
                      .hidden = hidden_});
    }
    for (int slice = kSlices; slice-- > 0;) stage_.backward({0, slice}, gradient_);
  }

  // Gap between two kernels, given the measured seconds of one call.
  static Seconds gap(const model::Shape& shape, Tokens tokens, const sim::Hardware& without_gap,
                     Seconds measured) {
    const mesh::Mesh alone;
    Seconds predicted = 0;
    for (int slice = 0; slice < kSlices; ++slice) {
      const sim::LayerCost cost = sim::layer_cost({.shape = shape,
                                                   .mesh = alone,
                                                   .keep = model::keep_of(model::Policy::None),
                                                   .tokens = static_cast<double>(tokens),
                                                   .own = static_cast<double>(tokens),
                                                   .earlier = static_cast<double>(slice),
                                                   .sequence = static_cast<double>(kSlices * tokens),
                                                   .sliced = true},
                                                  without_gap, sim::kPenstock);
      predicted += static_cast<double>(shape.layers) * (cost.forward.total() + cost.backward.total());
    }
    const std::int64_t kernels =
        shape.layers * kSlices *
        (sim::forward_kernels(sim::Family::Llama) + sim::backward_kernels(sim::Family::Llama));
    return std::max(0.0, measured - predicted) / static_cast<double>(kernels);
  }

 private:
  static constexpr int kSlices = 2;

  static nn::StageOptions options(model::Precision precision, const model::Shape& shape, Tokens tokens) {
    nn::StageOptions options;
    options.shape = shape;
    options.layers = {.first = 0, .count = shape.layers};
    options.first = options.last = false;
    options.precision = precision;
    options.rotary = nn::rotary_table(shape, kSlices * tokens, precision);
    options.keep.assign(static_cast<std::size_t>(shape.layers), model::keep_of(model::Policy::None));
    return options;
  }

  Tokens tokens_;
  nn::Stage stage_;
  at::Tensor hidden_, gradient_;
};

// Makes a Work of these arguments for each measurement.
template <class Work, class... Arguments>
profile::MakeWork works(const Arguments&... arguments) {
  return [=] {
    const auto work = std::make_shared<Work>(arguments...);
    return [work] { (*work)(); };
  };
}

profile::Request request_of(const MeasureOptions& options, bool large, comm::Communicator& world) {
  profile::Request request;
  if (large) request.sizes = profile::large_sizes();
  request.precision = options.precision;
  request.hosts = comm::all_texts(comm::host_name(), world);
  request.disk_folder = options.disk_folder;
  request.open_unnamed = [](const std::string& folder) { return files::file_system().open_unnamed(folder); };
  request.other_precision = !options.quick;
  const Seconds budget = options.budget.value_or(options.quick ? 0.04 : profile::Effort{}.budget);
  // Half of the budget, because everything is measured twice.
  request.effort = budget == 0     ? profile::kOnce
                   : options.quick ? profile::Effort{.budget = budget / 2, .least = 3, .late = 6}
                                   : profile::Effort{.budget = budget / 2, .least = 4};
  return request;
}

// Facts of rank 0's machine. `hosts`: one per rank. `memory`: taken before ranks had tensors. `held`: bytes
// of one rank's tensors, which other programs do not use. `on_gpu`: ranks that share the GPU.
profile::MachineFacts facts_of(const MeasureOptions& options, const std::vector<std::string>& hosts,
                               const std::string& transport, const profile::HostMemory& memory, Bytes held,
                               int on_gpu) {
  const train::Host machine = train::this_host();
  const auto ranks = static_cast<int>(std::ranges::count(hosts, hosts.front()));
  profile::MachineFacts facts{.description = machine.processor + ", " + machine.instructions,
                              .ranks = ranks,
                              .elsewhere = static_cast<int>(hosts.size()) - ranks,
                              .threads = options.threads,
                              .transport = transport,
                              .memory_bytes = memory.total,
                              .sharers = ranks,
                              .used_bytes = memory.used,
                              .host_bytes = memory.total};
  if (const auto gpu = backend::gpu()) {
    facts.description = gpu->name + ", " + machine.processor;
    facts.gpu = true;
    facts.memory_bytes = static_cast<double>(gpu->total);
    facts.sharers = on_gpu;
    facts.used_bytes =
        static_cast<double>(gpu->total - gpu->free - backend::cached_bytes() - facts.sharers * held);
  }
  return facts;
}

std::string measured_text(const MeasureOptions& options, comm::Communicator& world,
                          const std::string& transport, const SayMeasured& say) {
  const profile::HostMemory memory = profile::host_memory();
  world.barrier();  // until then no rank of this host allocates
  backend::Ledger ledger;
  const backend::LedgerScope counted(ledger);  // counts all tensors, as in training
  at::set_num_threads(options.threads);
  double fast = train::measure_matmul_rate(options.precision) > kFast ? 1 : 0;
  world.all_reduce(&fast, 1, comm::Type::F64, comm::Reduction::Max);
  const bool large = fast > 0;
  const model::Shape optimized = of_optimizer(large), layers = of_layers(large);
  const Tokens tokens = large ? 2048 : 256;
  profile::Request request = request_of(options, large, world);
  request.optimizer = works<OptimizerWork>(options.precision, optimized);
  request.optimizer_bytes = OptimizerWork::bytes(optimized);
  request.optimizer_work = OptimizerWork::words(optimized);
  request.layers = works<LayersWork>(options.precision, layers, tokens);
  profile::Measurements measured = profile::measure_machine(world, request, [&](const std::string& what) {
    if (world.rank() == 0) say(what);
  });
  const int on_gpu = ranks_on_gpu(world);
  profile::MachineFacts facts;
  if (world.rank() == 0)
    facts = facts_of(options, request.hosts, transport, memory, ledger.live_total(), on_gpu);
  world.barrier();  // until then the other ranks keep the tensors that facts_of() subtracts
  if (world.rank() != 0) return {};
  const std::string without_gap = profile::hardware_text(options.name, facts, measured);
  measured.gap =
      LayersWork::gap(layers, tokens, run::parse_hardware_text(without_gap, "what was measured").hardware,
                      measured.layer_seconds);
  return profile::hardware_text(options.name, facts, measured);
}

}  // namespace

std::string measured_as_rank(const MeasureOptions& options, comm::Communicator& world,
                             const std::string& transport, const SayMeasured& say) {
  backend::require_device();
  backend::take_turn(comm::place_on_machine(world.rank()));
  backend::install_allocator();
  world.connect_gpus();
  std::string text = measured_text(options, world, transport, say);
  backend::release_cached();  // later work, such as the run itself, needs the memory
  return text;
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
