// SPDX-License-Identifier: Apache-2.0
#include "train/offload/store.h"

#include "backend/copy.h"
#include "backend/host_memory.h"
#include "files/spill_file.h"

namespace penstock::train {
namespace {

class HostStore final : public OffloadStore {
 public:
  explicit HostStore(Bytes size) : OffloadStore(size), arena_(size, "offloaded records") {}

  void write(Bytes offset, std::span<const std::byte> bytes) override {
    backend::copy_bytes(at(offset), bytes.data(), bytes.size());
  }
  void read(Bytes offset, std::span<std::byte> bytes) override {
    backend::copy_bytes(bytes.data(), at(offset), bytes.size());
  }

 private:
  std::byte* at(Bytes offset) const { return arena_.bytes().data() + offset; }

  backend::HostMemory arena_;
};

class DiskStore final : public OffloadStore {
 public:
  DiskStore(const std::string& directory, int rank, Bytes size)
      : OffloadStore(size), file_(directory, directory + "/offload of rank " + std::to_string(rank), size) {}

  void write(Bytes offset, std::span<const std::byte> bytes) override { file_.write(offset, bytes); }
  void read(Bytes offset, std::span<std::byte> bytes) override { file_.read(offset, bytes); }

 private:
  files::SpillFile file_;
};

}  // namespace

void ensure_room(std::unique_ptr<OffloadStore>& store, Bytes size,
                 const std::function<std::unique_ptr<OffloadStore>()>& make) {
  if (store && store->size() >= size) return;
  store.reset();
  store = make();
}

std::unique_ptr<OffloadStore> host_store(Bytes size) { return std::make_unique<HostStore>(size); }

std::unique_ptr<OffloadStore> disk_store(const std::string& directory, int rank, Bytes size) {
  return std::make_unique<DiskStore>(directory, rank, size);
}

}  // namespace penstock::train
