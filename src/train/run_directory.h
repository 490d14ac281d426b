// SPDX-License-Identifier: Apache-2.0
// The directory of one run: made, locked, and never shared with another run.
#pragma once

#include <string>
#include <string_view>

namespace penstock::train {

enum class RunStart { New, Resume };

class RunDirectory {
 public:
  // Makes the directory with its parents, or takes an existing one, and locks it until the object is
  // destroyed or the process ends. Throws InputError, with nothing written, when the path is no directory or
  // cannot be written; when a new run finds the files of another one; when a resumed run finds none; when
  // another process holds the lock. check() finds the same but the lock, and makes nothing.
  RunDirectory(std::string path, RunStart start);
  static void check(const std::string& path, RunStart start);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string config() const { return file("run.toml"); }  // the resolved run file
  std::string metrics() const { return file("metrics.jsonl"); }
  std::string summary() const { return file("summary.json"); }
  std::string timeline() const { return file("timeline.json"); }
  std::string report() const { return file("report.html"); }
  std::string checkpoints() const { return file("checkpoints"); }
  std::string stop_request() const { return file("stop"); }  // put there to end the run gracefully
  std::string file(std::string_view name) const;

 private:
  static void refuse_unless(const std::string& path, RunStart start);
  void lock();

  std::string path_;
  int lock_ = -1;
};

}  // namespace penstock::train
