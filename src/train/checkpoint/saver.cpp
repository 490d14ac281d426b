// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/saver.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "backend/large_pages.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/start_thread.h"
#include "files/atomic_file.h"
#include "files/checksum.h"
#include "files/directory.h"
#include "train/checkpoint/gathered_share.h"
#include "train/checkpoint/state_shares.h"

namespace penstock::train {
namespace {

constexpr auto kPollPause = std::chrono::milliseconds(2);

// Gives the calling thread the lowest priority, so that files do not slow down ranks that compute.
void stand_back() {
  constexpr int kLowest = 19;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
}

}  // namespace

CheckpointSaver::CheckpointSaver(CheckpointDirectory directory, std::int64_t keep, std::int64_t newest,
                                 const model::Shape& shape, Trainer& trainer, comm::World world,
                                 Sharing sharing)
    : directory_(std::move(directory)),
      keep_(keep),
      newest_(newest),
      world_(world),
      sharing_(sharing),
      files_(checkpoint_files(shape)),
      live_(shares_of_state(files_, shape, trainer)) {
  for (const FileShare& share : live_) sums_.emplace_back(share.layout.begins.size());
}

CheckpointSaver::~CheckpointSaver() {
  if (phase_ == Phase::Idle) return;
  given_up_ = true;
  if (work_.valid()) work_.wait();
  if (world_->rank() == 0) files::remove_all(directory_.partial(facts_.step));
}

void CheckpointSaver::place_copies() {
  copies_ = live_;
  copy_bytes_ = bytes_in(live_);
  staging_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(copy_bytes_));
  backend::ask_for_large_pages(staging_.get(), static_cast<std::size_t>(copy_bytes_));
  std::byte* next = staging_.get();
  for (FileShare& file : copies_) {
    for (TensorShare& tensor : file.tensors) {
      tensor.values.reset();
      tensor.copy = std::span(next, tensor.size);
      next += tensor.size;
    }
  }
}

void CheckpointSaver::copy_state() {
  if (!staging_) place_copies();
  copy_shares(live_, staging_.get());
}

void CheckpointSaver::begin(CheckpointFacts facts) {
  settle();
  facts_ = std::move(facts);
  phase_ = Phase::Writing;
  if (sharing_ == Sharing::FirstRank) return write_gathered_files(facts_.step);
  copy_state();
  work_ = start_thread("a checkpoint", [this] {
    return std::async(std::launch::async, [this, step = facts_.step] {
      stand_back();
      write_files(step);
    });
  });
}

bool CheckpointSaver::busy() {
  if (consequence_) return awaits_the_cause();
  if (!work_.valid()) return false;
  if (work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return true;
  try {
    work_.get();
  } catch (const RunError&) {
    std::error_code unknown;
    if (world_->rank() == 0 || std::filesystem::exists(directory_.partial(facts_.step), unknown) || unknown)
      throw;
    consequence_ = std::current_exception();
    consequence_since_ = steady_seconds();
  }
  return consequence_ != nullptr;
}

// Rank 0 removes the partial checkpoint when it fails, and then the others cannot write to it: its error is
// the one to report, and is on its way.
bool CheckpointSaver::awaits_the_cause() const {
  constexpr Seconds kLong = 5;  // after it, somebody else removed the checkpoint
  if (steady_seconds() - consequence_since_ > kLong) std::rethrow_exception(consequence_);
  return true;
}

void CheckpointSaver::proceed() {
  if (phase_ == Phase::Writing) {
    gather_sums();
    phase_ = Phase::Finishing;
    if (world_->rank() == 0)
      work_ = start_thread("a checkpoint",
                           [this] { return std::async(std::launch::async, [this] { finish(); }); });
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

void CheckpointSaver::make_folder(std::int64_t step) {
  files::make_directory(directory_.path());
  files::make_directory(directory_.partial(step));
}

void CheckpointSaver::write_gathered_files(std::int64_t step) {
  if (world_->rank() == 0) make_folder(step);
  for (std::size_t i = 0; i < files_.size(); ++i) {
    write_gathered_share(directory_.partial(step) + "/" + files_[i].name, live_[i], world_);
    sums_[i] = word_sums_of(live_[i]);
  }
}

void CheckpointSaver::write_files(std::int64_t step) {
  make_folder(step);
  const std::string folder = directory_.partial(step);
  // A rank that gives up waits for this thread, and has a failure to report.
  const auto go_on = [&] {
    if (given_up_) throw RunError("writing " + folder + " was given up");
  };
  for (std::size_t i = 0; i < files_.size(); ++i) {
    write_share(folder + "/" + files_[i].name, copies_[i], go_on);
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
