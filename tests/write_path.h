// SPDX-License-Identifier: Apache-2.0
// The law of every file that the program writes: whichever call of a write fails, the failure is one line
// that names the place, what was there before is still there, nothing half-written is, and the next attempt
// succeeds.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <span>
#include <string>

#include "base/error.h"
#include "failure.h"
#include "faulty_files.h"
#include "scratch.h"

namespace penstock::testing {

using FilesBelow = std::map<std::string, std::string>;

struct WritePath {
  std::string name;
  std::function<void(const std::string& directory)> before;  // what is there already; may be empty
  std::function<void(const std::string& directory)> write;
  // Files that grow in place: what they had stays at their beginning, and they may end anywhere.
  std::function<bool(const std::string& file)> grows = [](const std::string&) { return false; };
  // What every whole write leaves the same bytes of.
  std::function<FilesBelow(FilesBelow)> same = [](FilesBelow files) { return files; };
  bool in_turn = false;  // writes several files, of which those that are whole may stay
};

struct InjectedFault {
  int error;
  FaultyFiles::Fault fault;
  const char* text;
};
inline constexpr InjectedFault kInjectedFaults[] = {
    {ENOSPC, FaultyFiles::Fault::Once, "No space left on device"},
    {EIO, FaultyFiles::Fault::Once, "Input/output error"},
    {ENOSPC, FaultyFiles::Fault::Short, "No space left on device"},
    {EIO, FaultyFiles::Fault::ForGood, "Input/output error"}};

class WritePathLaw {
 public:
  explicit WritePathLaw(const WritePath& path) : path_(path) {
    const Scratch scratch;
    begin(scratch);
    const FaultyFiles counting;
    path_.write(scratch.path());
    calls_ = counting.calls();
    const FilesBelow all = files_below(scratch.path());
    written_ = path_.same(all);
    for (const auto& [file, bytes] : all) names_.insert(file);
  }

  int calls() const { return calls_; }

  // Returns how many calls matter: the others are of what may fail without loss, such as flushing a
  // directory.
  int expect_safe_at_every_call(const InjectedFault& fault) const {
    int failures = 0;
    for (int at = 0; at < calls_; ++at) {
      SCOPED_TRACE(path_.name + ": " + fault.text + " at call " + std::to_string(at) + " of " +
                   std::to_string(calls_));
      failures += fails_safely(fault, at);
      if (::testing::Test::HasFailure()) break;
    }
    return failures;
  }

  void expect_whole_though_writes_are_short(std::size_t bytes) const {
    const Scratch scratch;
    begin(scratch);
    FaultyFiles slow;
    slow.write_at_most(bytes);
    path_.write(scratch.path());
    EXPECT_EQ(path_.same(files_below(scratch.path())), written_) << path_.name;
  }

 private:
  void begin(const Scratch& scratch) const {
    const FaultyFiles quick;
    if (path_.before) path_.before(scratch.path());
  }

  bool fails_safely(const InjectedFault& fault, int at) const {
    const Scratch scratch;
    begin(scratch);
    const FilesBelow before = files_below(scratch.path());
    std::string failed;
    {
      const FaultyFiles faulty(at, fault.error, fault.fault);
      failed = failure<RunError>([&] { path_.write(scratch.path()); });
    }
    if (failed.empty()) {
      EXPECT_EQ(path_.same(files_below(scratch.path())), written_) << "it was said to be written";
      return false;
    }
    EXPECT_NE(failed.find(scratch.path()), std::string::npos) << failed;
    EXPECT_NE(failed.find(fault.text), std::string::npos) << failed;
    EXPECT_EQ(failed.find('\n'), std::string::npos) << failed;
    const bool killed = fault.fault == FaultyFiles::Fault::ForGood;  // its files under other names stay
    expect_unharmed(before, files_below(scratch.path()));
    if (!killed) expect_nothing_half_written(before, files_below(scratch.path()));
    const FaultyFiles quick;
    path_.write(scratch.path());
    FilesBelow after = files_below(scratch.path());
    if (killed) std::erase_if(after, [&](const auto& file) { return !names_.contains(file.first); });
    EXPECT_EQ(path_.same(after), written_) << "the next attempt";
    return true;
  }

  void expect_unharmed(const FilesBelow& before, const FilesBelow& after) const {
    for (const auto& [file, bytes] : before) {
      const auto found = after.find(file);
      ASSERT_NE(found, after.end()) << file << " is gone";
      EXPECT_EQ(path_.grows(file) ? found->second.substr(0, bytes.size()) : found->second, bytes) << file;
    }
  }

  void expect_nothing_half_written(const FilesBelow& before, const FilesBelow& after) const {
    const FilesBelow whole = path_.same(after);
    for (const auto& [file, bytes] : after) {
      if (before.contains(file) || path_.grows(file)) continue;
      EXPECT_TRUE(path_.in_turn && names_.contains(file)) << file << " is left behind";
      if (whole.contains(file) && written_.contains(file)) {
        EXPECT_EQ(whole.at(file), written_.at(file)) << file;
      }
    }
  }

  const WritePath& path_;
  int calls_ = 0;
  FilesBelow written_;
  std::set<std::string> names_;  // of all files of a whole write
};

inline void expect_the_law(const WritePath& path, std::span<const InjectedFault> faults = kInjectedFaults) {
  const WritePathLaw law(path);
  ASSERT_GT(law.calls(), 0) << path.name << " writes through no file system";
  for (const InjectedFault& fault : faults) {
    EXPECT_GT(law.expect_safe_at_every_call(fault), 0) << path.name << ": nothing failed";
    if (::testing::Test::HasFailure()) return;
  }
  law.expect_whole_though_writes_are_short(1);
}

}  // namespace penstock::testing
