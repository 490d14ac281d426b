// SPDX-License-Identifier: Apache-2.0
#include "cli/train/same_hosts.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/program.h"
#include "comm/launcher.h"
#include "comm/rank_names.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "files/run_files.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestRunFile = std::size_t{1} << 24;
constexpr Seconds kUntilSeen = 5;
constexpr const char* kRemedy = "name one that all hosts see and write to, or set output.gather = true";

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

bool sees(const std::string& file, const std::string& text) {
  std::error_code error;
  return std::filesystem::exists(file, error) && files::MappedFile(file).text() == text;
}

[[noreturn]] void refuse_other_directory(const std::string& directory, const comm::Communicator& world) {
  throw InputError("output.dir = " + json_quote(directory) + " is another directory for " + this_rank(world) +
                   " than for rank 0; " + kRemedy);
}

// Polls until the file holds the token. Returns false after `until`.
bool comes_to_see(const std::string& file, const std::string& token, Seconds until) {
  while (!sees(file, token)) {
    if (steady_seconds() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

// Call the members in this order on all ranks, as long as none has failed. The destructor removes the token.
class SameDirectory {
 public:
  SameDirectory(const std::string& directory, comm::Communicator& world)
      : directory_(directory),
        world_(world),
        hosts_(comm::all_texts(comm::host_name(), world)),
        token_(comm::broadcast_text(world.rank() == 0 ? new_token() : std::string(), 0, world)) {}
  ~SameDirectory() {
    if (wrote_) files::remove_all(file_of(world_.rank()));
  }
  SameDirectory(const SameDirectory&) = delete;
  SameDirectory& operator=(const SameDirectory&) = delete;

  void write_first() {
    if (world_.rank() != 0) return;
    files::write_atomically(file_of(0), token_);
    wrote_ = true;
  }

  void read_first() const {
    if (!comes_to_see(file_of(0), token_, steady_seconds() + kUntilSeen))
      refuse_other_directory(directory_, world_);
  }

  void write_elsewhere() {
    const auto ranks = comm::first_ranks_of_hosts(hosts_, 1);
    if (std::ranges::find(ranks, world_.rank()) == ranks.end()) return;
    try {
      files::write_atomically(file_of(world_.rank()), token_);
      wrote_ = true;
    } catch (const RunError& failure) {
      throw InputError(this_rank(world_) + " cannot write to " + key() + " (" + failure.what() + "); " +
                       kRemedy);
    }
  }

  void read_elsewhere() const {
    if (world_.rank() != 0) return;
    const Seconds until = steady_seconds() + kUntilSeen;
    for (const int rank : comm::first_ranks_of_hosts(hosts_, 1)) {
      if (comes_to_see(file_of(rank), token_, until)) continue;
      throw InputError("rank 0 does not see what rank " + std::to_string(rank) + " on host " +
                       hosts_[static_cast<std::size_t>(rank)] + " writes to " + key() + "; " + kRemedy);
    }
  }

 private:
  std::string key() const { return "output.dir = " + json_quote(directory_); }
  std::string file_of(int rank) const {
    return (std::filesystem::path(directory_) / files::kToken).string() + "-" + std::to_string(rank);
  }

  const std::string directory_;
  comm::Communicator& world_;
  const std::vector<std::string> hosts_;  // one per rank
  const std::string token_;
  bool wrote_ = false;
};

}  // namespace

void require_one_program(comm::Communicator& world) {
  const std::string build = build_of_this_program(), first = comm::broadcast_text(build, 0, world);
  if (build == first) return;
  throw InputError(this_rank(world) + " runs another build of the program, " + build + ", than rank 0, " +
                   first + "; install the same on all hosts");
}

Refusal refuse_other_directories(const std::string& directory, comm::Communicator& world) {
  SameDirectory same(directory, world);
  const auto together = [&](auto&& step) { return agree(refusal_of(step), world); };
  Refusal refusal = together([&] { same.write_first(); });
  if (!refusal) refusal = together([&] { same.read_first(); });
  if (!refusal) refusal = together([&] { same.write_elsewhere(); });
  if (!refusal) refusal = together([&] { same.read_elsewhere(); });
  return refusal;
}

Refusal refuse_other_run_files(const std::string& directory, comm::Communicator& world) {
  const std::string file = (std::filesystem::path(directory) / files::kRunFile).string();
  std::string first;
  const Refusal unreadable = agree(refusal_of([&] {
                                     if (world.rank() == 0)
                                       first = files::read_text_if_there(file, kLongestRunFile).value_or("");
                                   }),
                                   world);
  if (unreadable) return unreadable;
  first = comm::broadcast_text(first, 0, world);
  if (first.empty()) return {};
  return agree(refusal_of([&] {
                 if (!sees(file, first)) refuse_other_directory(directory, world);
               }),
               world);
}

}  // namespace penstock::cli
