// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "comm/rank_names.h"
#include "comm/texts.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "schedule/program.h"
#include "train/checkpoint/copy_slot.h"
#include "train/checkpoint/host_copies.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

constexpr int kBringChannel = static_cast<int>(schedule::Channel::Control);
constexpr std::size_t kBroughtPart = std::size_t{64} << 20;

// Name and bytes of each copy that is whole, a line each.
std::string copies_listed(const std::string& directory) {
  std::ostringstream list;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    try {
      const files::MappedFile file(entry.path().string());
      if (contents_of_slot(file.bytes()))
        list << entry.path().filename().string() << " " << file.bytes().size() << "\n";
    } catch (const InputError&) {
      continue;  // removed meanwhile
    }
  }
  return list.str();
}

void receive_file(const std::string& path, std::size_t size, int from, comm::World world) {
  files::AtomicFile file(path);
  std::vector<std::byte> message;
  for (std::size_t first = 0; first < size; first += message.size()) {
    message.resize(std::min(kBroughtPart, size - first));
    world->receive(message, from, kBringChannel).wait();
    file.write(message);
  }
  file.commit();
}

void send_file(const std::string& path, int to, comm::World world) {
  const files::MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  for (std::size_t first = 0; first < bytes.size(); first += kBroughtPart)
    world->send(bytes.subspan(first, std::min(kBroughtPart, bytes.size() - first)), to, kBringChannel).wait();
}

}  // namespace

bool has_copies_to_bring(const std::string& directory, const std::string& host, int working,
                         comm::World world) {
  const std::vector<int> leaving = comm::first_ranks_of_hosts(comm::all_texts(host, *world), working);
  const bool looks = std::ranges::find(leaving, world->rank()) != leaving.end();
  std::int64_t found = looks && !copies_listed(directory).empty() ? 1 : 0;
  world->all_reduce(&found, 1, comm::Type::I64, comm::Reduction::Max);
  return found > 0;
}

void bring_copies(const std::string& directory, const std::string& host, int working, comm::World world) {
  const std::vector<std::string> hosts = comm::all_texts(host, *world);
  for (const int rank : comm::first_ranks_of_hosts(hosts, working)) {
    const int to = (rank - working) % working;
    const bool sends = world->rank() == rank;
    std::istringstream list(
        comm::broadcast_text(sends ? copies_listed(directory) : std::string(), rank, *world));
    if (world->rank() == to) make_private_directory(directory);
    std::string name;
    for (std::size_t size = 0; list >> name >> size;) {
      const std::string path = (fs::path(directory) / name).string();
      if (sends) send_file(path, to, world);
      if (world->rank() == to) receive_file(path + "-" + hosts[rank], size, rank, world);
    }
  }
}

}  // namespace penstock::train
