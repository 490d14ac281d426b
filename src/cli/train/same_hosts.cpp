// SPDX-License-Identifier: Apache-2.0
#include "cli/train/same_hosts.h"

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "cli/program.h"
#include "comm/launcher.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "files/run_files.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestToken = 100;
constexpr Seconds kUntilSeen = 5;

std::string this_rank(const comm::Communicator& world) {
  return "rank " + std::to_string(world.rank()) + " on host " + comm::host_name();
}

std::string build_of_this_program() {
  const files::MappedFile program("/proc/self/exe");
  return std::string(version()) + " (" + files::checksum_text(files::checksum(program.text())) + ")";
}

std::string new_token() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random());
}

bool sees(const std::string& file, const std::string& token) {
  std::error_code error;
  return std::filesystem::exists(file, error) && files::read_text(file, kLongestToken) == token;
}

void require_token(const std::string& directory, const std::string& file, const std::string& token,
                   comm::Communicator& world) {
  const Seconds until = steady_seconds() + kUntilSeen;
  while (!sees(file, token)) {
    if (steady_seconds() > until)
      throw InputError("output.dir = " + json_quote(directory) + " is another directory for " +
                       this_rank(world) +
                       " than for rank 0; name one that all hosts see, or set output.gather = true");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

void require_one_program(comm::Communicator& world) {
  const std::string build = build_of_this_program(), first = comm::broadcast_text(build, 0, world);
  if (build == first) return;
  throw InputError(this_rank(world) + " runs another build of the program, " + build + ", than rank 0, " +
                   first + "; install the same on all hosts");
}

Refusal refuse_other_directories(const std::string& directory, comm::Communicator& world) {
  const std::string file = (std::filesystem::path(directory) / files::kToken).string();
  const bool writes = world.rank() == 0;
  const std::string token = comm::broadcast_text(writes ? new_token() : std::string(), 0, world);
  Refusal refusal = agree(refusal_of([&] {
                            if (writes) files::write_atomically(file, token);
                          }),
                          world);
  if (!refusal) refusal = agree(refusal_of([&] { require_token(directory, file, token, world); }), world);
  if (writes) files::remove_all(file);
  return refusal;
}

}  // namespace penstock::cli
