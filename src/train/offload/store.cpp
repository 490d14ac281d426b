// SPDX-License-Identifier: Apache-2.0
#include "train/offload/store.h"

#include <sys/mman.h>

#include <cstring>

#include "base/error.h"
#include "files/spill_file.h"

namespace penstock::train {
namespace {

class HostStore final : public OffloadStore {
 public:
  explicit HostStore(Bytes size) : size_(static_cast<std::size_t>(size)) {
    void* arena = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
      throw RunError("out of memory: " + print_bytes(size) + " wanted on the host for offloaded records");
    arena_ = static_cast<std::byte*>(arena);
  }
  ~HostStore() override { munmap(arena_, size_); }
  HostStore(const HostStore&) = delete;
  HostStore& operator=(const HostStore&) = delete;

  void write(Bytes offset, std::span<const std::byte> bytes) override {
    std::memcpy(arena_ + offset, bytes.data(), bytes.size());
  }
  void read(Bytes offset, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), arena_ + offset, bytes.size());
  }

 private:
  std::size_t size_;
  std::byte* arena_ = nullptr;
};

class DiskStore final : public OffloadStore {
 public:
  DiskStore(const std::string& directory, int rank, Bytes size)
      : file_(directory, directory + "/offload of rank " + std::to_string(rank), size) {}

  void write(Bytes offset, std::span<const std::byte> bytes) override { file_.write(offset, bytes); }
  void read(Bytes offset, std::span<std::byte> bytes) override { file_.read(offset, bytes); }

 private:
  files::SpillFile file_;
};

}  // namespace

std::unique_ptr<OffloadStore> host_store(Bytes size) { return std::make_unique<HostStore>(size); }

std::unique_ptr<OffloadStore> disk_store(const std::string& directory, int rank, Bytes size) {
  return std::make_unique<DiskStore>(directory, rank, size);
}

}  // namespace penstock::train
