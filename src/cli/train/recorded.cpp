// SPDX-License-Identifier: Apache-2.0
#include "cli/train/recorded.h"

#include "base/error.h"
#include "cli/tell.h"
#include "comm/launcher.h"
#include "train/flight/flight_recorder.h"

namespace penstock::cli {

train::RunOutcome run_recorded(const run::Run& run, const train::TokenData& data, comm::Communicator& world,
                               const comm::RankNames& names, const train::RunDirectory* directory,
                               const train::RunObserver& observer, train::RunControl control) {
  train::FlightRecorder recorder({.directory = run.options.output.dir,
                                  .gathers = run.options.output.gather,
                                  .rank = world.rank(),
                                  .names = names,
                                  .tell = tell_remarks});
  control.recorder = &recorder;
  control.names = names;
  try {
    return train::run(run, data, world, directory, observer, control);
  } catch (const comm::PeerFailure&) {
    throw;
  } catch (const comm::LauncherEnd&) {
    throw;
  } catch (const RunError& failure) {
    const std::string culprit = recorder.explain();
    if (culprit.empty()) throw;
    throw RunError(std::string(failure.what()) + "; " + culprit);
  }
}

std::string failure_line(int rank, const std::exception& failure, const comm::RankNames& names) {
  std::string text = failure.what(), place;
  const auto* of_other = dynamic_cast<const comm::PeerFailure*>(&failure);
  if (of_other && !names.empty()) text = of_other->of(print_rank(names, of_other->rank)).what();
  if (!names.empty()) place = names.at(static_cast<std::size_t>(rank)).place;
  return "rank " + std::to_string(rank) + ": " + text.substr(0, text.find('\n')) + " (" +
         (place.empty() ? "" : place + ", ") + "host " + comm::host_name() + ")";
}

}  // namespace penstock::cli
