// SPDX-License-Identifier: Apache-2.0
#include "train/record/run_directory.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "files/directory.h"
#include "files/file_system.h"
#include "files/input_file.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "run/options.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw InputError("output.dir = " + json_quote(path) + " " + why);
}

bool exists(const std::string& path, const char* name) {
  std::error_code error;
  return fs::exists(fs::path(path) / name, error);
}

// Steps are recorded line by line; the last line of a killed run may be torn.
bool has_a_step(const std::string& path) {
  std::ifstream metrics(fs::path(path) / files::kMetrics);
  std::string line;
  if (std::getline(metrics, line) && !metrics.eof()) return true;
  // Any checkpoint counts except partial ones, step-000050.partial.
  return std::ranges::any_of(files::entries_of(fs::path(path) / files::kCheckpoints),
                             [](const fs::path& entry) { return entry.extension() != files::kPartial; });
}

// A run replaces its files; it must not replace a user's folder.
void refuse_folders(const std::string& path) {
  std::error_code error;
  for (const files::RunEntry& entry : files::kRunEntries) {
    if (!entry.folder && fs::is_directory(fs::path(path) / entry.name, error))
      fail(path, "has a folder " + std::string(entry.name) +
                     ", where a run has a file; move it away, or name another directory");
  }
}

// Every run creates the lock before its first file, so a run.toml without a lock is not a run's.
bool began_without_a_step(const std::string& path) {
  for (const char* later : {files::kSummary, files::kTimeline, files::kReport, files::kWeights}) {
    if (exists(path, later)) return false;
  }
  return exists(path, files::kLock) && exists(path, files::kRunFile) && !has_a_step(path);
}

bool is_same_file(const std::string& path, const std::string& other) {
  std::error_code error;
  return fs::equivalent(path, other, error);
}

// What is wrong with the run file, which tells whose the schedule is; empty if nothing is.
std::string fault_of_run_file(const std::string& path) try {
  if (exists(path, files::kRunFile)) run::read_options((fs::path(path) / files::kRunFile).string());
  return {};
} catch (const InputError& fault) {
  return fault.what();
}

void refuse_to_replace(const std::string& path, const std::string& schedule_file) {
  if (schedule_file.empty() || !exists(path, files::kSchedule) || !kept_schedule(path).empty()) return;
  const std::string fault = fault_of_run_file(path);
  fail(path, "holds a " + std::string(files::kSchedule) + " that is not a run's" +
                 (fault.empty() ? "" : ", as far as can be told (" + fault + "),") +
                 " and that the copy of schedule.file = " + json_quote(schedule_file) +
                 " would replace; move it away, or name another directory");
}

void remove_traces(const std::string& path, const std::string& schedule_file) {
  const std::string kept = kept_schedule(path);
  if (!kept.empty() && !is_same_file(kept, schedule_file)) files::remove_all(kept);
  // run.toml stays until the new one replaces it: it tells that the directory is a run's.
  for (const char* trace : {files::kMetrics, files::kCheckpoints})
    files::remove_all((fs::path(path) / trace).string());
}

// Removes what killed runs left of files that only the lock's holder writes (files/atomic_file.h).
void remove_unfinished_files(const std::string& path) {
  auto written = files::entries_that(&files::RunEntry::locked);
  for (const fs::path& entry : files::entries_of(path)) {
    const std::string name = entry.filename().string();
    const std::size_t end = name.rfind(".part-");
    if (end != std::string::npos && std::ranges::count(written, name.substr(0, end)) > 0)
      files::remove_all(entry.string());
  }
}

}  // namespace

std::string kept_schedule(const std::string& directory) try {
  const std::string copy = (fs::path(directory) / files::kSchedule).string();
  if (!exists(directory, files::kSchedule)) return {};
  const run::Options options = run::read_options((fs::path(directory) / files::kRunFile).string());
  return is_same_file(options.schedule.file, copy) ? copy : std::string();
} catch (const InputError&) {
  return {};
}

RunDirectory::RunDirectory(std::string path, RunStart start, const std::string& schedule_file)
    : path_(std::move(path)) {
  check(path_, start, schedule_file);
  if (files::make_directories(path_) != 0)
    fail(path_, std::string("cannot be made: ") + std::strerror(errno));
  lock();
  try {
    refuse_unless(path_, start);  // another run may have started since the first check
    taken_over_ = start == RunStart::New && began_without_a_step(path_);
    if (taken_over_) remove_traces(path_, schedule_file);
    remove_unfinished_files(path_);
    // Requests to earlier starts, and answers of processes that are gone.
    for (const char* old : {files::kWhereRequest, files::kPositions}) files::remove_all(file(old));
  } catch (...) {
    close(std::exchange(lock_, -1));
    throw;
  }
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

void RunDirectory::check(const std::string& path, RunStart start, const std::string& schedule_file) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    fail(path, "is not a directory; name another one");
  refuse_folders(path);
  refuse_unless(path, start);
  refuse_to_replace(path, schedule_file);
  const std::string metrics = (fs::path(path) / files::kMetrics).string();
  if (start == RunStart::Resume && files::is_there(metrics)) files::InputFile{metrics};  // it will be read
  fs::path there = fs::absolute(path, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (access(there.c_str(), W_OK) != 0 && errno != ENOTDIR) {
    fail(path, std::string("cannot be written: ") + std::strerror(errno));
  }
}

std::string RunDirectory::file(std::string_view name) const { return (fs::path(path_) / name).string(); }

void RunDirectory::forget_end() const {
  for (const char* record : files::entries_that(&files::RunEntry::ending)) files::remove_all(file(record));
}

void RunDirectory::refuse_unless(const std::string& path, RunStart start) {
  if (start == RunStart::New && began_without_a_step(path)) return;
  for (const char* trace : {files::kRunFile, files::kMetrics, files::kSummary, files::kTimeline,
                            files::kReport, files::kCheckpoints}) {
    if (!exists(path, trace)) continue;
    if (start == RunStart::Resume) return;
    fail(path, std::string(kHoldsARun) + " (" + trace +
                   " is there); name another directory, or continue with --resume");
  }
  if (start == RunStart::Resume) fail(path, "holds no run to resume; leave out --resume");
}

void RunDirectory::lock() {
  lock_ = files::file_system().open(file(files::kLock), files::OpenFor::Parts);
  if (lock_ < 0) fail(path_, std::string("cannot be written: ") + files::kLock + ": " + std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const bool held = errno == EWOULDBLOCK;
  const std::string reason = std::strerror(errno);
  close(std::exchange(lock_, -1));
  fail(path_,
       held ? std::string(kInUse) + "; name another directory, or wait" : "cannot be locked: " + reason);
}

}  // namespace penstock::train
