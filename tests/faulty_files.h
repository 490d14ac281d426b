// SPDX-License-Identifier: Apache-2.0
// A disk that fails when told to. Flushing does nothing, so that tests are quick.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <future>
#include <limits>

#include "files/file_system.h"

namespace penstock {

class FaultyFiles : public files::FileSystem {
 public:
  // For good: as if the process had been killed at that call. Short: if that call writes, it writes a part,
  // and the call after it fails.
  enum class Fault { Once, ForGood, Short };

  static constexpr int kNever = std::numeric_limits<int>::max();

  // The call number `at`, from 0, fails with `error`.
  explicit FaultyFiles(int at = kNever, int error = ENOSPC, Fault fault = Fault::Once)
      : at_(at), error_(error), fault_(fault), replaced_(*this) {}

  int calls() const { return calls_; }
  void write_at_most(std::size_t bytes) { longest_write_ = bytes; }

  // Writes wait until open_gate().
  void close_gate() { gated_ = true; }
  void open_gate() {
    gated_ = false;
    gate_.set_value();
  }

  int open(const std::string& path, files::OpenFor purpose) override {
    return fails() ? -1 : FileSystem::open(path, purpose);
  }
  ssize_t write(int descriptor, std::span<const std::byte> bytes) override {
    if (gated_) opened_.wait();
    if (fails()) return -1;
    return FileSystem::write(descriptor, shortened(bytes));
  }
  ssize_t write_at(int descriptor, std::span<const std::byte> bytes, std::int64_t offset) override {
    if (gated_) opened_.wait();
    if (fails()) return -1;
    return FileSystem::write_at(descriptor, shortened(bytes), offset);
  }
  ssize_t read_at(int descriptor, std::span<std::byte> bytes, std::int64_t offset) override {
    return fails() ? -1 : FileSystem::read_at(descriptor, bytes, offset);
  }
  int open_unnamed(const std::string& directory) override {
    return fails() ? -1 : FileSystem::open_unnamed(directory);
  }
  int reserve(int descriptor, std::int64_t bytes) override {
    return fails() ? -1 : FileSystem::reserve(descriptor, bytes);
  }
  int resize(int descriptor, std::int64_t bytes) override {
    return fails() ? -1 : FileSystem::resize(descriptor, bytes);
  }
  int flush(int) override { return fails() ? -1 : 0; }
  int leave_cache(int) override { return fails() ? -1 : 0; }
  int rename(const std::string& from, const std::string& to) override {
    return fails() ? -1 : FileSystem::rename(from, to);
  }
  int make_directory(const std::string& path) override {
    return fails() ? -1 : FileSystem::make_directory(path);
  }
  int remove(const std::string& path) override { return fails() ? -1 : FileSystem::remove(path); }

 private:
  bool fails() {
    const int call = calls_++;
    const bool now = fault_ == Fault::ForGood ? call >= at_
                     : fault_ == Fault::Once  ? call == at_
                                              : torn_.load();
    if (now) {
      torn_ = false;
      errno = error_;
    }
    return now;
  }

  // Of the call that fails() has counted.
  std::span<const std::byte> shortened(std::span<const std::byte> bytes) {
    bytes = bytes.first(std::min(bytes.size(), longest_write_));
    if (fault_ != Fault::Short || calls_ - 1 != at_ || bytes.size() < 2) return bytes;
    torn_ = true;
    return bytes.first(bytes.size() / 2);
  }

  int at_;
  int error_;
  Fault fault_;
  std::atomic<int> calls_ = 0;
  std::atomic<bool> torn_ = false;  // the call before wrote a part
  std::atomic<bool> gated_ = false;
  std::promise<void> gate_;
  std::shared_future<void> opened_{gate_.get_future()};
  std::size_t longest_write_ = std::numeric_limits<std::size_t>::max();
  files::ReplacedFileSystem replaced_;
};

}  // namespace penstock
