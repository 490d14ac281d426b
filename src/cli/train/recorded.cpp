// SPDX-License-Identifier: Apache-2.0
#include "cli/train/recorded.h"

#include "base/error.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "train/flight/flight_recorder.h"

namespace penstock::cli {

train::RunOutcome run_recorded(const run::Run& run, const train::TokenData& data, comm::Communicator& world,
                               const train::RunDirectory* directory, const train::RunObserver& observer,
                               train::RunControl control) {
  train::FlightRecorder recorder({.directory = run.options.output.dir,
                                  .rank = world.rank(),
                                  .ranks = world.size(),
                                  .place = print_place(run.mesh, world.rank()),
                                  .tell = tell_lines});
  control.recorder = &recorder;
  try {
    return train::run(run, data, world, directory, observer, control);
  } catch (const comm::PeerFailure&) {
    throw;
  } catch (const RunError& failure) {
    const std::string culprit = recorder.explain();
    if (culprit.empty()) throw;
    throw RunError(std::string(failure.what()) + "; " + culprit);
  }
}

void report_failure(int rank, const std::exception& failure, const std::string& place) {
  const std::string text = failure.what();
  tell("rank " + std::to_string(rank) + ": " + text.substr(0, text.find('\n')) + " (" +
       (place.empty() ? "" : place + ", ") + "host " + comm::host_name() + ")");
}

}  // namespace penstock::cli
