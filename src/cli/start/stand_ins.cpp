// SPDX-License-Identifier: Apache-2.0
// What `penstock` has in place of all that needs LibTorch or MPI, whose loading takes longer than most
// commands: where a command comes to one of these functions, the process becomes `penstock-compute`, the
// whole program, which begins again with the same words. None of them comes after output.
#include <functional>
#include <string>

#include "cli/become.h"
#include "cli/data/choices.h"
#include "cli/data/describe_data.h"
#include "cli/profile/measure.h"
#include "cli/profile/profile_machine.h"
#include "cli/start/whole.h"
#include "cli/tell.h"
#include "cli/train/train.h"
#include "comm/launcher.h"
#include "comm/mpi.h"
#include "train/checkpoint/directory.h"
#include "train/machine_probe.h"

namespace penstock {
namespace {

[[noreturn]] void become_whole() { cli::become(cli::program_beside("penstock-compute")); }

}  // namespace

namespace cli {

Exit train(const TrainFlags&) { become_whole(); }
Exit profile_machine(const ProfileFlags&) { become_whole(); }
Exit describe_data(const DataFlags&) { become_whole(); }
run::StepContent content_of_step(const run::Run&, std::int64_t) { become_whole(); }
std::string measured_here(const MeasureOptions&, int, const SayMeasured&) { become_whole(); }
std::string measured_as_rank(const MeasureOptions&, comm::Communicator&, const std::string&,
                             const SayMeasured&) {
  become_whole();
}

void become_whole_now() { become_whole(); }

void tell_once(const std::string& text) {
  if (comm::launched_by_mpi()) become_whole();
  tell(text);
}

}  // namespace cli

run::Machine train::probe_machine(int) { become_whole(); }
void train::verify_weights(const std::string&, int, int, const std::function<void()>&) { become_whole(); }
int comm::local_ranks() { become_whole(); }

}  // namespace penstock
