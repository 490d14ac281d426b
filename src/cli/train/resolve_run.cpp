// SPDX-License-Identifier: Apache-2.0
#include "cli/train/resolve_run.h"

#include <algorithm>

#include "base/option_text.h"
#include "cli/automatic_threads.h"
#include "cli/profile/speeds.h"
#include "cli/train/resume.h"
#include "comm/mpi.h"
#include "files/option_file.h"
#include "run/resolve/resolve.h"
#include "train/machine.h"

namespace penstock::cli {

std::string configuration_of(run::Options options) { return print_toml(run::describe(options)); }

run::Run resolved_here(const RunSource& source, int& ranks) {
  run::Options options = run::read_options(source.file, source.overrides);
  ranks = fit_ranks(options, ranks, source.resumes);
  run::Machine machine = train::probe_machine(automatic_threads(ranks));
  if (run::chooses_by_speed(options)) machine.hardware = speeds_of({}, options).hardware;
  return run::resolve(std::move(options), machine);
}

Refusal resolve_together(const RunSource& source, comm::Communicator& world, run::Run& run) {
  run::Options options;
  Refusal refusal = agree(refusal_of([&] {
                            options = run::read_options(source.file, source.overrides);
                            fit_ranks(options, world.size(), source.resumes);
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

// Wrong input is left to be reported by all.
int ranks_needed(const RunSource& source, comm::Communicator& world) {
  std::int64_t needed = world.size();
  const Refusal refusal = refusal_of([&] {
    run::Options options = run::read_options(source.file, source.overrides);
    needed = fit_ranks(options, world.size(), source.resumes);
  });
  if (refusal) needed = world.size();
  world.all_reduce(&needed, 1, comm::Type::I64, comm::Reduction::Max);
  return static_cast<int>(std::min<std::int64_t>(needed, world.size()));
}

}  // namespace penstock::cli
