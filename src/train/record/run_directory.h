// SPDX-License-Identifier: Apache-2.0
// The directory of one run: created, locked, and never shared with another run.
#pragma once

#include <string>
#include <string_view>

#include "files/run_files.h"

namespace penstock::train {

enum class RunStart { New, Resume };

// Parts of refusals, by which supervise recognises them.
inline constexpr const char* kInUse = "is in use by another run";
inline constexpr const char* kHoldsARun = "already holds a run";

// Path of the schedule.csv of a run directory whose run file names it; empty if there is none or it belongs
// to no run.
std::string kept_schedule(const std::string& directory);

class RunDirectory {
 public:
  // Creates the directory with its parents, or takes an existing one, and locks it until the object is
  // destroyed or the process ends. A new run takes over the directory of a run that completed no step.
  // Removes files that a killed run has not finished. `schedule_file`: the run's, may be empty. Throws
  // InputError and writes nothing if the path is no directory or not writable, a new run finds another
  // run's files, a resumed run finds none or a metrics.jsonl that cannot be read, the copy of the schedule
  // would replace a schedule.csv that is no run's, or another process holds the lock. check() does the same
  // checks except the lock's, and creates nothing.
  RunDirectory(std::string path, RunStart start, const std::string& schedule_file = {});
  static void check(const std::string& path, RunStart start, const std::string& schedule_file = {});
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  bool taken_over() const { return taken_over_; }
  std::string config() const { return file(files::kRunFile); }  // the resolved run file
  std::string metrics() const { return file(files::kMetrics); }
  std::string summary() const { return file(files::kSummary); }
  std::string timeline() const { return file(files::kTimeline); }
  std::string report() const { return file(files::kReport); }
  std::string stop_request() const {
    return file(files::kStopRequest);
  }  // created by the user to end the run
  std::string file(std::string_view name) const;

  // Removes what the run wrote at an earlier end, summary.json first: from here on it is not finished, and
  // its model is in its checkpoints.
  void forget_end() const;

 private:
  static void refuse_unless(const std::string& path, RunStart start);
  void lock();

  std::string path_;
  int lock_ = -1;
  bool taken_over_ = false;
};

}  // namespace penstock::train
