// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/profile_machine.h"

#include <iostream>
#include <optional>

#include "backend/device.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/automatic_threads.h"
#include "cli/device_program.h"
#include "cli/gpu_messages.h"
#include "cli/input/output_path.h"
#include "cli/profile/measure.h"
#include "cli/profile/speeds.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "comm/mpi.h"
#include "files/atomic_file.h"
#include "files/directory.h"
#include "nn/kernels/matmul.h"
#include "run/hardware_file.h"
#include "train/machine.h"

namespace penstock::cli {
namespace {

// Upper bound per core: with more, threads wait for a core longer than a measurement lasts.
constexpr int kMostOnCore = 16;

void check_count(const char* flag, int count) {
  const int cores = train::this_host().cores;
  require(count <= kMostOnCore * cores, std::string(flag) + " " + std::to_string(count) +
                                            " is too many for " + counted(cores, "core") + "; use at most " +
                                            std::to_string(kMostOnCore * cores));
}

void check(const ProfileFlags& flags) {
  check_count("--ranks", flags.ranks);
  check_count("--threads", flags.threads);
  if (flags.budget && !(*flags.budget >= 0 && *flags.budget <= 10))
    throw InputError("--budget " + std::to_string(*flags.budget) + ": use seconds from 0 to 10");
  if (!flags.precision.empty() && flags.precision != "bf16" && flags.precision != "f32")
    throw InputError("--precision \"" + printable(flags.precision) + "\" is unknown; use bf16 or f32");
  const bool gpu = !backend::compute_device().is_cpu();
  require(flags.device == "cpu" || flags.device == "cuda",
          "--device \"" + printable(flags.device) + "\" is unknown; use cpu or cuda");
  require(gpu == (flags.device == "cuda"),
          gpu ? "--device cpu: this program computes on a GPU; start penstock"
              : "--device cuda: this program computes on the CPU alone; ./dev build --gpu builds the one "
                "for GPUs");
  backend::require_device();
  if (flags.name.empty()) throw InputError("--name is empty; give the machine a name");
  check_output("--out", flags.out);
}

model::Precision precision_of(const ProfileFlags& flags) {
  if (!flags.precision.empty()) return model::parse_precision(flags.precision);
  const bool slow = nn::kernels::fastest_bf16_products() == nn::kernels::Bf16Products::Widened;
  return slow ? model::Precision::F32 : model::Precision::BF16;
}

int threads_of(const ProfileFlags& flags, int ranks) {
  return flags.threads > 0 ? flags.threads : automatic_threads(ranks);
}

MeasureOptions options_of(const ProfileFlags& flags, int ranks) {
  return {.name = flags.name,
          .precision = precision_of(flags),
          .quick = flags.quick,
          .threads = threads_of(flags, ranks),
          .budget = flags.budget,
          .disk_folder = files::folder_of(flags.out)};
}

void say(const std::string& what) { std::cerr << "profile   " + what + "\n" << std::flush; }

// Writes --out, or keeps the profile for runs with this division of the cores and their simulations.
void hand_over(const ProfileFlags& flags, int ranks, const std::string& text) {
  run::parse_hardware_text(text, flags.out.empty() ? "what was measured" : flags.out);
  if (flags.out.empty()) {
    const MeasureOptions options = options_of(flags, ranks);
    const std::string path =
        keep_profile({.precision = options.precision, .ranks = ranks, .threads = options.threads}, text);
    const bool have_cores = with_cores(ranks, options.threads) == ranks;
    if (!path.empty())
      say((have_cores ? "kept for simulate: " : "kept for ranks of mpirun that share cores like these: ") +
          path);
    std::cout << text;
  } else {
    files::write_atomically(flags.out, text);
    say("written: " + flags.out);
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

std::string transport_of(bool by_nccl, const comm::Communicator& world) {
  const std::string processes = "processes of mpirun";
  if (by_nccl) return processes + ", messages by NCCL";
  const bool by_host = world.size() > 1 && !backend::compute_device().is_cpu();
  return by_host ? processes + ", messages through the host's memory" : processes;
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
        const auto gpus = gpu_ranks(world);  // as in a run of these ranks
        const std::string text = measured_as_rank(options_of(flags, world.size()), gpus ? *gpus : world,
                                                  transport_of(gpus != nullptr, world), say);
        if (world.rank() == 0) hand_over(flags, world.size(), text);
      },
      report_failure);
  return exit_code;
}

Exit profile_here(const ProfileFlags& flags) {
  check(flags);
  const std::optional<backend::Gpu> gpu = backend::gpu();
  const int usual = gpu ? gpu->gpus : std::min(2, train::this_host().cores);
  const int ranks = flags.ranks > 0 ? flags.ranks : usual;
  hand_over(flags, ranks, measured_here(options_of(flags, ranks), ranks, say));
  return Exit::Done;
}

}  // namespace

Exit profile_machine(const ProfileFlags& flags) {
  become_program_for_gpus(flags.device);
  return comm::launched_by_mpi() ? profile_under_mpi(flags) : profile_here(flags);
}

}  // namespace penstock::cli
