// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "comm/rank_names.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/directory.h"
#include "files/mapped_file.h"
#include "schedule/program.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/copy_slot.h"
#include "train/checkpoint/host_copies.h"
#include "train/checkpoint/state_copy.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBroughtPart = std::size_t{64} << 20;

// Name and size of each complete copy of the run, one per line. The newest alone is not enough: a part of it
// may be missing elsewhere.
std::string copies_listed(const std::string& directory, const std::string& run) {
  std::ostringstream list;
  for (const fs::path& entry : files::entries_of(directory)) {
    try {
      const files::MappedFile file(entry.string());
      const auto contents = contents_of_slot(file.bytes());
      if (contents && parse_state_copy(contents->text, entry.string()).run == run)
        list << entry.filename().string() << " " << file.bytes().size() << "\n";
    } catch (const InputError&) {
      continue;  // not a copy, or removed meanwhile
    }
  }
  return list.str();
}

// Returns why the file could not be written; empty if it was. The sender sends all of it in any case.
std::string receive_file(const std::string& path, std::size_t size, int from, AllAtWork& work,
                         comm::World world) {
  std::optional<files::AtomicFile> file;
  std::string failed;
  const auto attempt = [&](auto&& write) {
    if (!failed.empty()) return;
    try {
      write();
    } catch (const RunError& failure) {
      failed = failure.what();
      file.reset();
    }
  };
  attempt([&] { file.emplace(path); });
  std::vector<std::byte> message;
  for (std::size_t first = 0; first < size; first += message.size()) {
    message.resize(std::min(kBroughtPart, size - first));
    world->receive(message, from, kCopiesChannel).wait();
    attempt([&] { file->write(message); });
    work.still_working();
  }
  attempt([&] { file->commit(); });
  return failed;
}

void send_file(const std::string& path, int to, AllAtWork& work, comm::World world) {
  const files::MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  for (std::size_t first = 0; first < bytes.size(); first += kBroughtPart) {
    world->send(bytes.subspan(first, std::min(kBroughtPart, bytes.size() - first)), to, kCopiesChannel)
        .wait();
    work.still_working();
  }
}

}  // namespace

bool has_copies_to_bring(const std::string& directory, const std::string& run, const std::string& host,
                         int working, comm::World world) {
  const std::vector<int> leaving = comm::first_ranks_of_hosts(comm::all_texts(host, *world), working);
  const bool looks = std::ranges::find(leaving, world->rank()) != leaving.end();
  std::int64_t found = looks && !copies_listed(directory, run).empty() ? 1 : 0;
  world->all_reduce(&found, 1, comm::Type::I64, comm::Reduction::Max);
  return found > 0;
}

std::vector<std::string> bring_copies(const std::string& directory, const std::string& run,
                                      const std::string& host, int working, comm::World world) {
  std::vector<std::string> failures;
  const std::vector<std::string> hosts = comm::all_texts(host, *world);
  for (const int rank : comm::first_ranks_of_hosts(hosts, working)) {
    const int to = (rank - working) % working;
    const bool sends = world->rank() == rank, receives = world->rank() == to;
    std::istringstream list(
        comm::broadcast_text(sends ? copies_listed(directory, run) : std::string(), rank, *world));
    if (receives) make_private_directory(directory);
    AllAtWork work(world);
    std::string name;
    for (std::size_t size = 0; list >> name >> size;) {
      const std::string path = (fs::path(directory) / name).string();
      if (sends) send_file(path, to, work, world);
      if (!receives) continue;
      const std::string failed = receive_file(path + "-" + hosts[rank], size, rank, work, world);
      if (!failed.empty()) failures.push_back(failed);
    }
    work.end();
  }
  return failures;
}

}  // namespace penstock::train
