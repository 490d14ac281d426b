// SPDX-License-Identifier: Apache-2.0
// What `penstock` has in place of all that needs LibTorch or MPI, whose loading takes longer than most
// commands: where a command comes to one of these functions, the process becomes `penstock-compute`, the
// whole program, which begins again with the same words. None of them comes after output.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/data/choices.h"
#include "cli/data/describe_data.h"
#include "cli/profile/measure.h"
#include "cli/profile/profile_machine.h"
#include "cli/start/whole.h"
#include "cli/tell.h"
#include "cli/train/train.h"
#include "comm/launcher.h"
#include "train/machine_probe.h"

namespace penstock {
namespace {

// The words this process was started with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size(); begin += words.back().size() + 1)
    words.emplace_back(text.c_str() + begin);
  return words;
}

[[noreturn]] void become_whole() {
  std::error_code error;
  const std::string whole = std::filesystem::read_symlink("/proc/self/exe", error).string() + "-compute";
  std::vector<std::string> words = own_words();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(whole.c_str(), arguments.data());
  throw RunError(whole + ", which trains, cannot be started: " + std::strerror(errno));
}

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

}  // namespace penstock
