// SPDX-License-Identifier: Apache-2.0
#include "cli/train/resolve_run.h"

#include <algorithm>
#include <utility>

#include "base/option_text.h"
#include "cli/automatic_threads.h"
#include "cli/profile/speeds.h"
#include "cli/tell.h"
#include "cli/train/resume.h"
#include "comm/mpi.h"
#include "run/resolve.h"
#include "train/machine.h"

namespace penstock::cli {

std::string configuration_of(run::Options options) { return print_toml(run::describe(options)); }

run::Run resolved_here(const TrainFlags& flags, int& ranks) {
  run::Options options = run::read_options(flags.file, flags.overrides);
  ranks = fit_ranks(options, ranks, flags.resume);
  run::Machine machine = train::probe_machine(automatic_threads(ranks));
  if (run::chooses_by_speed(options)) machine.hardware = speeds_of({}, options).hardware;
  return run::resolve(std::move(options), machine);
}

Refusal resolve_together(const TrainFlags& flags, comm::Communicator& world, run::Run& run) {
  run::Options options;
  Refusal refusal = agree(refusal_of([&] {
                            options = run::read_options(flags.file, flags.overrides);
                            fit_ranks(options, world.size(), flags.resume);
                          }),
                          world);
  if (refusal) return refusal;
  run::Machine machine = train::probe_machine(automatic_threads(comm::local_ranks()));
  std::int64_t chooses = run::chooses_by_speed(options) ? 1 : 0;
  world.all_reduce(&chooses, 1, comm::Type::I64, comm::Reduction::Max);
  if (chooses != 0) {
    refusal = agree(refusal_of([&] { require_same(configuration_of(options), world); }), world);
    if (refusal) return refusal;
    machine.hardware = speeds_together(options, world).hardware;
  }
  return agree(refusal_of([&] { run = run::resolve(std::move(options), machine); }), world);
}

int ranks_needed(const TrainFlags& flags, comm::Communicator& world) {
  std::int64_t needed = world.size();
  const Refusal refusal = refusal_of([&] {
    run::Options options = run::read_options(flags.file, flags.overrides);
    needed = fit_ranks(options, world.size(), flags.resume);
  });
  if (refusal) needed = world.size();
  world.all_reduce(&needed, 1, comm::Type::I64, comm::Reduction::Max);
  return static_cast<int>(std::min<std::int64_t>(needed, world.size()));
}

void tell_idle(int needed, int started) {
  if (needed < started)
    tell(std::to_string(needed) + " of the " + std::to_string(started) + " ranks have work");
}

}  // namespace penstock::cli
