// SPDX-License-Identifier: Apache-2.0
// Stand-ins in `penstock` for functions that need LibTorch or MPI, which take longer to load than most
// commands run. When a command calls one, `penstock-compute`, the whole program, replaces the process and
// starts again with the same command line. No command calls one after output.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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
#include "run/options.h"
#include "train/checkpoint/directory.h"
#include "train/machine_probe.h"

namespace penstock {
namespace {

[[noreturn]] void become_whole() { cli::become(cli::program_beside("penstock-compute")); }

}  // namespace

namespace cli {

// Refuses a wrong run file at once, where no other rank reports it and a pipe's text is not lost by reading
// it.
Exit train(const TrainFlags& flags) {
  std::error_code error;
  const RunSource& source = flags.source;
  const std::filesystem::file_status file = std::filesystem::status(source.file, error);
  if (!comm::launched_by_mpi() && (is_regular_file(file) || !exists(file)))
    run::read_options(source.file, source.overrides);
  become_whole();
}
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
train::CheckpointDirectory train::checkpoints_in(const std::string&) { become_whole(); }
std::vector<std::int64_t> train::CheckpointDirectory::steps() const { become_whole(); }
std::string train::CheckpointDirectory::of_step(std::int64_t) const { become_whole(); }
int comm::local_ranks() { become_whole(); }

}  // namespace penstock
