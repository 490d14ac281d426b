// SPDX-License-Identifier: Apache-2.0
#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock::train {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw InputError("output.dir = " + json_quote(path) + " " + why);
}

}  // namespace

RunDirectory::RunDirectory(std::string path, RunStart start) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    fail(path_, "is no directory; name another one");
  refuse_unless(start);
  fs::create_directories(path_, error);
  if (error) fail(path_, "cannot be made: " + error.message());
  lock();
  try {
    refuse_unless(start);  // another run may have begun between the first look and the lock
  } catch (...) {
    close(std::exchange(lock_, -1));
    throw;
  }
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

std::string RunDirectory::file(std::string_view name) const { return (fs::path(path_) / name).string(); }

void RunDirectory::refuse_unless(RunStart start) const {
  const std::array traces{config(), metrics(), summary(), timeline(), report(), checkpoints()};
  std::error_code error;
  for (const std::string& trace : traces) {
    if (!fs::exists(trace, error)) continue;
    if (start == RunStart::Resume) return;
    fail(path_, "already holds a run (" + fs::path(trace).filename().string() +
                    " is there); name another directory");
  }
  if (start == RunStart::Resume) fail(path_, "holds no run to resume; leave out --resume");
}

void RunDirectory::lock() {
  lock_ = open(file("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) fail(path_, std::string("cannot be written: ") + std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const bool held = errno == EWOULDBLOCK;
  const std::string reason = std::strerror(errno);
  close(std::exchange(lock_, -1));
  fail(path_,
       held ? "is in use by another run; name another directory, or wait" : "cannot be locked: " + reason);
}

}  // namespace penstock::train
