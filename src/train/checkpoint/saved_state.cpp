// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/saved_state.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "files/checksum.h"

namespace penstock::train {
namespace {

class StateInFiles : public SavedState {
 public:
  explicit StateInFiles(std::string checkpoint) : checkpoint_(std::move(checkpoint)) {}

  void for_tensors(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const override {
    for (const FileSums& file : facts.files) {
      std::optional<OpenFile> open;
      for (const auto& [tensor, sum] : file.tensors) {
        const bool wanted = wants(tensor);
        if (wanted && !open) open.emplace(checkpoint_ + "/" + file.file);
        visit({file, tensor, sum}, wanted ? &checked(*open, tensor, sum) : nullptr);
      }
    }
  }

  std::string name() const override { return checkpoint_; }

 private:
  struct OpenFile {
    explicit OpenFile(const std::string& path) : input(path), mapped(input) {}
    files::InputFile input;
    files::Safetensors mapped;
  };

  // Reads the bytes for the sum, so that the mapping is accessed only where the disk could deliver them.
  static const files::StoredTensor& checked(OpenFile& open, const std::string& tensor, std::uint64_t sum) {
    const std::string& path = open.input.path();
    const files::StoredTensor* stored = open.mapped.find(tensor);
    if (!stored) throw InputError(path + ": has no tensor \"" + tensor + "\"");
    if (files::word_sum(open.input, open.mapped.begin_of(*stored), stored->bytes.size()) != sum)
      throw InputError(path + ": tensor \"" + tensor + "\" is damaged");
    return *stored;
  }

  std::string checkpoint_;
};

constexpr std::size_t kMostDimensions = 6;

class StateOfFirst : public SavedState {
 public:
  StateOfFirst(std::string checkpoint, comm::World world) : files_(std::move(checkpoint)), world_(world) {}

  void for_tensors(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const override {
    if (world_->rank() != 0) return receive(facts, wants, visit);
    std::vector<std::byte> buffer;
    const auto all = [](const std::string&) { return true; };
    files_.for_tensors(facts, all, [&](const Place& place, const files::StoredTensor* stored) {
      send(*stored, buffer);
      visit(place, wants(place.tensor) ? stored : nullptr);
    });
  }

  std::string name() const override { return files_.name(); }

 private:
  using Head = std::array<std::int64_t, 3 + kMostDimensions>;  // type, bytes, dimensions

  void send(const files::StoredTensor& stored, std::vector<std::byte>& buffer) const {
    PENSTOCK_CHECK(stored.shape.size() <= kMostDimensions, "tensors of a checkpoint have few dimensions");
    Head head{static_cast<std::int64_t>(stored.type), std::ssize(stored.bytes), std::ssize(stored.shape)};
    std::ranges::copy(stored.shape, head.begin() + 3);
    world_->broadcast(std::as_writable_bytes(std::span(head)), 0);
    buffer.assign(stored.bytes.begin(), stored.bytes.end());
    world_->broadcast(buffer, 0);
  }

  void receive(const CheckpointFacts& facts, const Wants& wants, const Visit& visit) const {
    std::vector<std::byte> buffer;
    for (const FileSums& file : facts.files) {
      for (const auto& [tensor, sum] : file.tensors) {
        Head head{};
        world_->broadcast(std::as_writable_bytes(std::span(head)), 0);
        buffer.resize(static_cast<std::size_t>(head[1]));
        world_->broadcast(buffer, 0);
        const files::StoredTensor stored{.name = tensor,
                                         .type = static_cast<files::ElementType>(head[0]),
                                         .shape = {head.begin() + 3, head.begin() + 3 + head[2]},
                                         .bytes = buffer};
        visit({file, tensor, sum}, wants(tensor) ? &stored : nullptr);
      }
    }
  }

  StateInFiles files_;
  comm::World world_;
};

}  // namespace

std::unique_ptr<SavedState> state_in_files(std::string checkpoint) {
  return std::make_unique<StateInFiles>(std::move(checkpoint));
}

std::unique_ptr<SavedState> state_in_files_of_first(std::string checkpoint, comm::World world) {
  return std::make_unique<StateOfFirst>(std::move(checkpoint), world);
}

}  // namespace penstock::train
