// SPDX-License-Identifier: Apache-2.0
#include "cli/train/resolve_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <utility>

#include "base/option_text.h"
#include "cli/automatic_threads.h"
#include "cli/profile/speeds.h"
#include "cli/train/resume.h"
#include "comm/mpi.h"
#include "comm/texts.h"
#include "files/option_file.h"
#include "run/resolve/resolve.h"
#include "run/settle.h"
#include "train/machine_probe.h"
#include "train/record/run_directory.h"

namespace penstock::cli {

run::Options read_source(const RunSource& source) {
  run::Options options = run::read_options(source.file, source.overrides);
  std::string& file = options.schedule.file;
  std::error_code error;
  const bool named_here = std::ranges::any_of(
      source.overrides, [](const std::string& word) { return word.starts_with("--schedule.file"); });
  if (!source.resumes || named_here || file.empty() || std::filesystem::exists(file, error)) return options;
  if (std::string kept = train::kept_schedule(options.output.dir); !kept.empty()) file = std::move(kept);
  return options;
}

std::string configuration_of(run::Options options) { return print_toml(run::describe(options)); }

Seconds patience_at_start(const RunSource& source) try {
  constexpr Seconds kLeast = 60;
  const Seconds timeout = read_source(source).train.timeout;
  return timeout == 0 ? 0 : std::max(timeout, kLeast);
} catch (const InputError&) {  // all ranks report it together, later
  return comm::kUsualStartLimit;
}

run::Run resolved_here(const RunSource& source, int& ranks) {
  run::Options options = read_source(source);
  ranks = fit_ranks(options, ranks, source.resumes);
  run::Machine machine = train::probe_machine(automatic_threads(ranks));
  if (run::chooses_by_speed(options)) machine.hardware = speeds_of({}, options).hardware;
  return run::resolve(std::move(options), machine);
}

namespace {

// Rank 0 fits the options to the ranks and to the resumed run, which other hosts may not see.
Refusal read_and_fit(const RunSource& source, comm::Communicator& world, run::Options& options, int& needed) {
  const auto together = [&](auto&& work) { return agree(refusal_of(work), world); };
  Refusal refusal = together([&] { options = read_source(source); });
  if (refusal) return refusal;
  const bool first = world.rank() == 0;
  refusal = together([&] {
    if (first) needed = fit_ranks(options, world.size(), source.resumes);
  });
  if (refusal) return refusal;
  std::array<std::int64_t, 6> fitted{needed,
                                     options.parallel.dp,
                                     options.numerics.replicas,
                                     options.numerics.tensor,
                                     options.schedule.slices,
                                     options.schedule.chunks};
  world.broadcast(std::as_writable_bytes(std::span(fitted)), 0);
  needed = static_cast<int>(fitted[0]);
  options.parallel.dp = fitted[1];
  options.numerics.replicas = fitted[2];
  options.numerics.tensor = fitted[3];
  options.schedule.slices = fitted[4];
  options.schedule.chunks = fitted[5];
  options.parallel.cp_mode = comm::broadcast_text(options.parallel.cp_mode, 0, world);
  return {};
}

}  // namespace

Refusal resolve_together(const RunSource& source, comm::Communicator& world, run::Run& run) {
  run::Options options;
  int needed = 0;
  Refusal refusal = read_and_fit(source, world, options, needed);
  if (refusal) return refusal;
  run::Machine machine = train::probe_machine(automatic_threads(comm::local_ranks()));
  if (on_any_rank(run::chooses_by_speed(options), world)) {
    refusal = agree(refusal_of([&] { require_same(configuration_of(options), world); }), world);
    if (!refusal) refusal = agree(refusal_of([&] { run::require_possible(options); }), world);
    if (refusal) return refusal;
    machine.hardware = speeds_together(options, world).hardware;
  }
  return agree(refusal_of([&] { run = run::resolve(std::move(options), machine); }), world);
}

// Leaves wrong input to be reported by all ranks later.
int ranks_needed(const RunSource& source, comm::Communicator& world) {
  run::Options options;
  int needed = 0;
  return read_and_fit(source, world, options, needed) ? world.size() : std::min(needed, world.size());
}

std::string device_of(const RunSource& source) {
  try {
    return read_source(source).train.device;
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace penstock::cli
