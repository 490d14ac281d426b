// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/error.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "train/gather_weights.h"
#include "train/tensor_bytes.h"
#include "train/weights_file.h"

namespace penstock::train {
namespace {

constexpr auto kPollPause = std::chrono::milliseconds(2);

at::Tensor kept_tensor(const Optimizer::Entry& entry, Kept kept) {
  switch (kept) {
    case Kept::Weight:
      return entry.parameter->master;
    case Kept::FirstMoment:
      return entry.first_moment;
    case Kept::SecondMoment:
      return entry.second_moment;
  }
  return {};
}

}  // namespace

CheckpointSaver::CheckpointSaver(CheckpointDirectory directory, std::int64_t keep, std::int64_t newest,
                                 const model::Shape& shape, Trainer& trainer, comm::Communicator& pipeline)
    : directory_(std::move(directory)),
      keep_(keep),
      newest_(newest),
      pipeline_(pipeline),
      files_(checkpoint_files(shape)) {
  for (const CheckpointFile& file : files_) sums_.emplace_back(1 + file.tensors.size());
  find_own_files(trainer);
}

CheckpointSaver::~CheckpointSaver() {
  if (phase_ == Phase::Idle) return;
  given_up_ = true;
  if (work_.valid()) work_.wait();
  if (pipeline_.rank() == 0) files::remove_all(directory_.partial(facts_.step));
}

void CheckpointSaver::find_own_files(Trainer& trainer) {
  for (const Optimizer::Entry& entry : trainer.optimizer().entries()) {
    if (entry.parameter->replica == nn::Replica::None) held_[entry.parameter->name] = &entry;
  }
  for (std::size_t number = 0; number < files_.size(); ++number) {
    if (is_sharded(files_[number])) {
      sharded_.push_back(number);
      if (pipeline_.rank() == 0) own_.push_back({.number = number});
      continue;
    }
    if (!held_.contains(files_[number].tensors.front().parameter)) continue;
    StagedFile own{.number = number};
    for (const CheckpointTensor& tensor : files_[number].tensors) {
      own.live.push_back(kept_tensor(*held_.at(tensor.parameter), tensor.kept));
    }
    own_.push_back(std::move(own));
  }
}

// Every rank has a part of each shard, so all agree on the files.
bool CheckpointSaver::is_sharded(const CheckpointFile& file) const {
  return std::ranges::any_of(file.tensors, [&](const CheckpointTensor& tensor) {
    const auto entry = held_.find(tensor.parameter);
    return entry != held_.end() && entry->second->parameter->is_shard();
  });
}

// Brings the whole matrices of sharded files to rank 0, where they are live until they are copied.
void CheckpointSaver::gather_shards() {
  for (const std::size_t number : sharded_) {
    std::vector<std::string> names;
    std::map<std::string, at::Tensor> mine;
    for (const CheckpointTensor& tensor : files_[number].tensors) {
      names.push_back(tensor.name);
      const auto entry = held_.find(tensor.parameter);
      if (entry == held_.end()) continue;
      mine[tensor.name] = entry->second->parameter->unpadded(kept_tensor(*entry->second, tensor.kept));
    }
    const auto own = std::ranges::find(own_, number, &StagedFile::number);
    if (own != own_.end()) own->live.clear();
    gather_tensors(names, mine, pipeline_,
                   [&](const std::string&, const at::Tensor& tensor) { own->live.push_back(tensor); });
  }
}

void CheckpointSaver::place_copies() {
  std::size_t size = 0;
  for (const StagedFile& file : own_) {
    for (const at::Tensor& tensor : file.live) size += tensor.nbytes();
  }
  staging_ = std::make_unique_for_overwrite<std::byte[]>(size);
  copy_bytes_ = static_cast<Bytes>(size);
  std::byte* next = staging_.get();
  for (StagedFile& file : own_) {
    for (std::size_t i = 0; i < file.live.size(); ++i) {
      const at::Tensor& tensor = file.live[i];
      file.copies.push_back({files_[file.number].tensors[i].name, element_type(tensor), tensor.sizes().vec(),
                             std::span(next, tensor.nbytes())});
      next += tensor.nbytes();
    }
  }
}

void CheckpointSaver::copy_state() {
  if (!staging_) place_copies();
  std::byte* next = staging_.get();
  for (const StagedFile& file : own_) {
    for (const at::Tensor& tensor : file.live) {
      const std::span<const std::byte> bytes = bytes_of_tensor(tensor);
      std::memcpy(next, bytes.data(), bytes.size());
      next += bytes.size();
    }
  }
}

void CheckpointSaver::begin(CheckpointFacts facts) {
  settle();
  gather_shards();
  copy_state();
  for (StagedFile& file : own_) {
    if (std::ranges::count(sharded_, file.number) > 0) file.live.clear();
  }
  facts_ = std::move(facts);
  phase_ = Phase::Writing;
  work_ = std::async(std::launch::async, [this, step = facts_.step] { write_files(step); });
}

bool CheckpointSaver::busy() {
  if (!work_.valid()) return false;
  if (work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return true;
  work_.get();
  return false;
}

void CheckpointSaver::proceed() {
  if (phase_ == Phase::Writing) {
    gather_sums();
    phase_ = Phase::Finishing;
    if (pipeline_.rank() == 0) work_ = std::async(std::launch::async, [this] { finish(); });
  } else if (phase_ == Phase::Finishing) {
    newest_ = facts_.step;
    phase_ = Phase::Idle;
  }
}

void CheckpointSaver::settle() {
  while (phase_ != Phase::Idle) {
    std::int64_t anyone = busy() ? 1 : 0;
    pipeline_.all_reduce(&anyone, 1, comm::Type::I64, comm::Reduction::Max);
    if (anyone == 0) {
      proceed();
    } else {
      std::this_thread::sleep_for(kPollPause);
    }
  }
}

void CheckpointSaver::write_files(std::int64_t step) {
  files::make_directory(directory_.path());
  const std::string folder = directory_.partial(step);
  files::make_directory(folder);
  for (const StagedFile& file : own_) {
    if (given_up_) return;
    sums_[file.number] = write_file(file, folder);
  }
}

std::vector<std::uint64_t> CheckpointSaver::write_file(const StagedFile& file,
                                                       const std::string& folder) const {
  const std::string path = folder + "/" + files_[file.number].name;
  std::vector<std::uint64_t> sums{
      files::checksum(files::write_safetensors(path, file.copies, {{"format", "pt"}}))};
  for (const files::StoredTensor& tensor : file.copies) sums.push_back(files::checksum(tensor.bytes));
  return sums;
}

// Everyone's sums are zero where the file is another rank's.
void CheckpointSaver::gather_sums() {
  std::vector<std::int64_t> all;
  for (const auto& sums : sums_) all.insert(all.end(), sums.begin(), sums.end());
  pipeline_.all_reduce(all.data(), all.size(), comm::Type::I64, comm::Reduction::Sum);
  facts_.files.clear();
  auto next = all.begin();
  for (const CheckpointFile& file : files_) {
    FileSums sums{.file = file.name, .head = static_cast<std::uint64_t>(*next++)};
    for (const CheckpointTensor& tensor : file.tensors) {
      sums.tensors.emplace_back(tensor.name, static_cast<std::uint64_t>(*next++));
    }
    facts_.files.push_back(std::move(sums));
  }
}

void CheckpointSaver::finish() {
  const std::string folder = directory_.partial(facts_.step);
  const std::string index = weight_index(files_);
  facts_.index = files::checksum(index);
  files::write_atomically(folder + "/" + kWeightIndex, index);
  files::write_atomically(folder + "/" + kCheckpointFacts, to_json(facts_));
  if (given_up_) return;
  files::publish_directory(folder, directory_.of_step(facts_.step));
  directory_.keep_newest(keep_);
}

}  // namespace penstock::train
