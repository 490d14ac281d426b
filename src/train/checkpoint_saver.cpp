// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "model/parameters.h"
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
  find_own_files(trainer, shape);
}

CheckpointSaver::~CheckpointSaver() {
  if (phase_ == Phase::Idle) return;
  given_up_ = true;
  if (work_.valid()) work_.wait();
  if (pipeline_.rank() == 0) files::remove_all(directory_.partial(facts_.step));
}

void CheckpointSaver::find_own_files(Trainer& trainer, const model::Shape& shape) {
  for (const Optimizer::Entry& entry : trainer.optimizer().entries()) {
    if (entry.parameter->replica == nn::Replica::None) held_[entry.parameter->name] = &entry;
  }
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (model::ParameterShape& parameter : model::parameter_shapes(shape))
    sizes[parameter.name] = std::move(parameter.sizes);
  for (std::size_t number = 0; number < files_.size(); ++number) {
    const bool sharded = is_sharded(files_[number]);
    if (sharded) sharded_.push_back(number);
    const bool own = held_.contains(files_[number].tensors.front().parameter);
    if (sharded ? pipeline_.rank() != 0 : !own) continue;
    StagedFile& file = own_.emplace_back(StagedFile{.number = number});
    for (const CheckpointTensor& tensor : files_[number].tensors) {
      if (!sharded) file.live.push_back(kept_tensor(*held_.at(tensor.parameter), tensor.kept));
      const files::ElementType type = element_type(held_.begin()->second->parameter->master);
      file.copies.push_back({tensor.name, type, sizes.at(tensor.parameter), {}});
    }
  }
}

// Every rank has a part of each shard, so all agree on the files.
bool CheckpointSaver::is_sharded(const CheckpointFile& file) const {
  return std::ranges::any_of(file.tensors, [&](const CheckpointTensor& tensor) {
    const auto entry = held_.find(tensor.parameter);
    return entry != held_.end() && entry->second->parameter->is_shard();
  });
}

void CheckpointSaver::place_copies() {
  const auto bytes_of = [](const files::StoredTensor& tensor) {
    const std::int64_t count =
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies());
    return static_cast<std::size_t>(count) * size_of(tensor.type);
  };
  std::size_t size = 0;
  for (const StagedFile& file : own_) {
    for (const files::StoredTensor& tensor : file.copies) size += bytes_of(tensor);
  }
  staging_ = std::make_unique_for_overwrite<std::byte[]>(size);
  copy_bytes_ = static_cast<Bytes>(size);
  std::byte* next = staging_.get();
  for (StagedFile& file : own_) {
    for (files::StoredTensor& tensor : file.copies) {
      tensor.bytes = std::span(next, bytes_of(tensor));
      next += tensor.bytes.size();
    }
  }
}

void CheckpointSaver::copy_into(const files::StoredTensor& copy, const at::Tensor& tensor) {
  const std::span<const std::byte> bytes = bytes_of_tensor(tensor);
  PENSTOCK_CHECK(bytes.size() == copy.bytes.size(), "a tensor has the model's size");
  std::memcpy(staging_.get() + (copy.bytes.data() - staging_.get()), bytes.data(), bytes.size());
}

void CheckpointSaver::copy_state() {
  if (!staging_) place_copies();
  for (const StagedFile& file : own_) {
    for (std::size_t i = 0; i < file.live.size(); ++i) copy_into(file.copies[i], file.live[i]);
  }
  for (const std::size_t number : sharded_) copy_shards(number);
}

// Brings the whole matrices of a sharded file to rank 0, one after another.
void CheckpointSaver::copy_shards(std::size_t number) {
  std::vector<std::string> names;
  std::map<std::string, at::Tensor> mine;
  for (const CheckpointTensor& tensor : files_[number].tensors) {
    names.push_back(tensor.name);
    const auto entry = held_.find(tensor.parameter);
    if (entry == held_.end()) continue;
    mine[tensor.name] = entry->second->parameter->unpadded(kept_tensor(*entry->second, tensor.kept));
  }
  const auto file = std::ranges::find(own_, number, &StagedFile::number);
  std::size_t next = 0;
  gather_tensors(names, mine, pipeline_, [&](const std::string&, const at::Tensor& tensor) {
    copy_into(file->copies[next++], tensor);
  });
}

void CheckpointSaver::begin(CheckpointFacts facts) {
  settle();
  copy_state();
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
