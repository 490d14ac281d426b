// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/saver.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "base/error.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "model/parameters.h"
#include "nn/groups/tensor_bytes.h"
#include "train/checkpoint/weights_file.h"

namespace penstock::train {
namespace {

constexpr auto kPollPause = std::chrono::milliseconds(2);

}  // namespace

CheckpointSaver::CheckpointSaver(CheckpointDirectory directory, std::int64_t keep, std::int64_t newest,
                                 const model::Shape& shape, Trainer& trainer, comm::World world)
    : directory_(std::move(directory)),
      keep_(keep),
      newest_(newest),
      world_(world),
      files_(checkpoint_files(shape)) {
  find_shares(trainer, shape);
}

CheckpointSaver::~CheckpointSaver() {
  if (phase_ == Phase::Idle) return;
  given_up_ = true;
  if (work_.valid()) work_.wait();
  if (world_->rank() == 0) files::remove_all(directory_.partial(facts_.step));
}

void CheckpointSaver::find_shares(Trainer& trainer, const model::Shape& shape) {
  OwnedTensors owned;
  for (const Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const nn::Parameter& parameter = *entry.parameter;
    if (parameter.written().count == 0) continue;
    owned.emplace(kept_name(parameter.name, Kept::Weight), TensorSource{&parameter, parameter.master});
    owned.emplace(kept_name(parameter.name, Kept::FirstMoment), TensorSource{&parameter, entry.first_moment});
    owned.emplace(kept_name(parameter.name, Kept::SecondMoment),
                  TensorSource{&parameter, entry.second_moment});
  }
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (model::ParameterShape& parameter : model::parameter_shapes(shape))
    sizes[parameter.name] = std::move(parameter.sizes);
  const files::ElementType type = element_type(trainer.parameters().front()->master);
  for (const CheckpointFile& file : files_) {
    std::vector<files::StoredTensor> whole;
    for (const CheckpointTensor& tensor : file.tensors) {
      whole.push_back({tensor.name, type, sizes.at(tensor.parameter), {}});
    }
    live_.push_back(share_of_file(whole, owned));
    sums_.emplace_back(whole.size());
  }
}

void CheckpointSaver::place_copies() {
  copies_ = live_;
  std::size_t size = 0;
  for (const FileShare& file : live_) {
    for (const TensorShare& tensor : file.tensors) size += tensor.bytes.size();
  }
  staging_ = std::make_unique_for_overwrite<std::byte[]>(size);
  copy_bytes_ = static_cast<Bytes>(size);
  std::byte* next = staging_.get();
  for (FileShare& file : copies_) {
    for (TensorShare& tensor : file.tensors) {
      tensor.bytes = std::span(next, tensor.bytes.size());
      next += tensor.bytes.size();
    }
  }
}

void CheckpointSaver::copy_state() {
  if (!staging_) place_copies();
  std::byte* next = staging_.get();
  for (const FileShare& file : live_) {
    for (const TensorShare& tensor : file.tensors) next = std::ranges::copy(tensor.bytes, next).out;
  }
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
    if (world_->rank() == 0) work_ = std::async(std::launch::async, [this] { finish(); });
  } else if (phase_ == Phase::Finishing) {
    newest_ = facts_.step;
    phase_ = Phase::Idle;
  }
}

void CheckpointSaver::settle() {
  while (phase_ != Phase::Idle) {
    std::int64_t anyone = busy() ? 1 : 0;
    world_->all_reduce(&anyone, 1, comm::Type::I64, comm::Reduction::Max);
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
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (given_up_) return;
    write_share(folder + "/" + files_[i].name, copies_[i]);
    sums_[i] = word_sums_of(copies_[i]);
  }
}

void CheckpointSaver::gather_sums() {
  std::vector<std::uint64_t> mine;
  for (const auto& sums : sums_) mine.insert(mine.end(), sums.begin(), sums.end());
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(world_->size()));
  world_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  const auto sum_of = [&](std::size_t number) {
    std::uint64_t sum = 0;
    for (std::size_t i = number; i < all.size(); i += mine.size()) sum = files::add_word_sums(sum, all[i]);
    return sum;
  };
  facts_.files.clear();
  std::size_t number = 0;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    FileSums sums{.file = files_[i].name, .head = files::checksum(live_[i].layout.head), .tensors{}};
    for (const CheckpointTensor& tensor : files_[i].tensors) {
      sums.tensors.emplace_back(tensor.name, sum_of(number++));
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
