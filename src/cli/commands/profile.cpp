// SPDX-License-Identifier: Apache-2.0
// penstock profile: measures this machine and writes its hardware file, as ranks of mpirun or as threads.
#include "profile/profile.h"
#include "files/file_system.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/hardware_file.h"
#include "cli/input/number_flags.h"
#include "cli/tell.h"
#include "cli/train/agree.h"
#include "comm/mpi.h"
#include "comm/single.h"
#include "comm/threads.h"
#include "files/atomic_file.h"
#include "nn/kernels/matmul.h"
#include "nn/stage.h"
#include "nn/stage_parameters.h"
#include "profile/hardware_text.h"
#include "profile/host_memory.h"
#include "sim/costs/engine.h"
#include "train/machine.h"
#include "train/step/optimizer.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

struct ProfileFlags {
  int ranks = 0;  // 0: two, or the number of cores if fewer
  int threads = 0;
  std::string out;
  std::string name = "this-machine";
  std::string precision;
  double budget = profile::Effort{}.budget;
};

std::string folder_of(const std::string& file) {
  const std::string parent = fs::path(file).parent_path();
  return parent.empty() ? "." : parent;
}

void check(const ProfileFlags& flags) {
  if (!(flags.budget >= 0 && flags.budget <= 10))
    throw InputError("--budget " + std::to_string(flags.budget) + ": use seconds from 0 to 10");
  if (!flags.precision.empty() && flags.precision != "bf16" && flags.precision != "f32")
    throw InputError("--precision \"" + printable(flags.precision) + "\" is unknown; use bf16 or f32");
  if (flags.name.empty()) throw InputError("--name is empty; give the machine a name");
  if (!flags.out.empty() && !fs::is_directory(folder_of(flags.out)))
    throw InputError("--out " + printable(flags.out) + ": there is no folder \"" +
                     printable(folder_of(flags.out)) + "\"");
  if (fs::is_directory(flags.out))
    throw InputError("--out " + printable(flags.out) + " is a folder; name a file");
}

model::Precision precision_of(const ProfileFlags& flags) {
  if (!flags.precision.empty()) return model::parse_precision(flags.precision);
  const bool slow = nn::kernels::fastest_bf16_products() == nn::kernels::Bf16Products::Widened;
  return slow ? model::Precision::F32 : model::Precision::BF16;
}

// A few layers and their optimizer: measures the last op of a training step.
class OptimizerWork {
 public:
  explicit OptimizerWork(model::Precision precision) : stage_(options(precision)) {
    std::vector<nn::Parameter*> parameters;
    std::vector<std::string> names;
    for (nn::Parameter& parameter : stage_.parameters()) {
      parameters.push_back(&parameter);
      names.push_back(parameter.name);
      numbers_ += static_cast<double>(parameter.weight.numel());
    }
    optimizer_ = std::make_unique<train::Optimizer>(parameters, names, run::TrainOptions{});
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

int threads_of(const ProfileFlags& flags, int ranks) {
  if (flags.threads > 0) return flags.threads;
  const int cores = train::this_host().cores;
  return comm::launched_by_mpi() && cores < static_cast<int>(std::thread::hardware_concurrency())
             ? cores
             : std::max(1, cores / ranks);
}

// Rank 0's text; empty on the others.
std::string profile_as_rank(const ProfileFlags& flags, comm::Communicator& world, int ranks,
                            const std::string& transport) {
  const int threads = threads_of(flags, ranks);
  at::set_num_threads(threads);
  OptimizerWork optimizer(precision_of(flags));
  profile::Request request;
  request.precision = precision_of(flags);
  request.effort.budget = flags.budget;
  request.disk_folder = folder_of(flags.out);
  request.open_unnamed = [](const std::string& folder) { return files::file_system().open_unnamed(folder); };
  request.optimizer = [&] { optimizer(); };
  request.optimizer_bytes = optimizer.bytes();
  const auto say = [&](const std::string& what) {
    if (world.rank() == 0) std::cerr << "profile   " + what + "\n" << std::flush;
  };
  const profile::Measurements measured = profile::measure_machine(world, request, say);
  if (world.rank() != 0) return {};
  const train::Host machine = train::this_host();
  const profile::HostMemory memory = profile::host_memory();
  const profile::MachineFacts facts{.description = machine.processor + ", " + machine.instructions,
                                    .ranks = ranks,
                                    .threads = threads,
                                    .transport = transport,
                                    .memory_bytes = memory.total,
                                    .used_bytes = memory.used};
  return profile::hardware_text(flags.name, facts, measured);
}

void hand_over(const ProfileFlags& flags, const std::string& text) {
  check_hardware_text(text, flags.out.empty() ? "what was measured" : flags.out);
  if (flags.out.empty()) {
    std::cout << text;
  } else {
    files::write_atomically(flags.out, text);
    std::cerr << "profile   written: " + flags.out + "\n" << std::flush;
  }
}

void report_failure(int rank, const std::exception& failure) {
  tell("rank " + std::to_string(rank) + ": " + failure.what());
}

void check_under_mpi(const ProfileFlags& flags, comm::Communicator& world) {
  check(flags);
  if (flags.ranks > 0)
    throw InputError("--ranks " + std::to_string(flags.ranks) +
                     " starts threads of one process, but mpirun has started the ranks; leave it out");
  if (world.size() != comm::local_ranks())
    throw InputError("mpirun has started " + std::to_string(world.size()) + " ranks, of which " +
                     std::to_string(comm::local_ranks()) + " are here; profile one machine at a time");
}

Exit profile_under_mpi(const ProfileFlags& flags) {
  Exit exit_code = Exit::Done;
  comm::run_mpi(
      [&](comm::Communicator& world) {
        const Refusal refusal = agree(refusal_of([&] { check_under_mpi(flags, world); }), world);
        exit_code = refusal.exit_code;
        if (refusal) {
          if (world.rank() == 0) tell(refusal.text);
          return;
        }
        const std::string text = profile_as_rank(flags, world, world.size(), "processes of mpirun");
        if (world.rank() == 0) hand_over(flags, text);
      },
      report_failure);
  return exit_code;
}

Exit profile_here(const ProfileFlags& flags) {
  check(flags);
  const int ranks = flags.ranks > 0 ? flags.ranks : std::min(2, train::this_host().cores);
  std::string text;
  if (ranks == 1) {
    const auto alone = comm::make_single();
    text = profile_as_rank(flags, *alone, 1, "alone");
  } else {
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      const std::string mine = profile_as_rank(flags, world, ranks, "threads of one process");
      if (world.rank() == 0) text = mine;
    });
  }
  hand_over(flags, text);
  return Exit::Done;
}

}  // namespace

void add_profile_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<ProfileFlags>();
  CLI::App* command = program.add_subcommand(
      "profile", "Measure this machine, in under two minutes, and write its hardware file for plan.");
  command
      ->add_option("--ranks", flags->ranks,
                   "measure with so many ranks at work, threads of this process; default 2; not under mpirun")
      ->check(whole_number_from(1));
  command->add_option("--threads", flags->threads, "of each rank; default: the cores over the ranks")
      ->check(whole_number_from(1));
  command->add_option("--out", flags->out, "the hardware file; default: stdout");
  command->add_option("--name", flags->name, "what the file calls the machine; default this-machine");
  command->add_option("--precision", flags->precision,
                      "bf16 or f32, what will be trained in; default: bf16 where the processor has it");
  command->add_option("--budget", flags->budget, "seconds of repeats for each figure; default 0.15");
  command->callback([flags, &exit_code] {
    exit_code = comm::launched_by_mpi() ? profile_under_mpi(*flags) : profile_here(*flags);
  });
}

}  // namespace penstock::cli
