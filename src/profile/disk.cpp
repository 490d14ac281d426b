// SPDX-License-Identifier: Apache-2.0
#include "profile/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace penstock::profile {
namespace {

constexpr std::size_t kFile = 64 << 20, kPiece = 4 << 20;

class ScratchFile {
 public:
  ScratchFile(const std::string& folder, int descriptor) : folder_(folder), descriptor_(descriptor) {
    if (descriptor_ < 0) fail("no file can be made in the folder");
  }
  ~ScratchFile() { close(descriptor_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  void write_through(const std::vector<char>& piece) {
    for (std::size_t at = 0; at < kFile; at += kPiece) {
      errno = ENOSPC;  // a short write does not set it
      if (pwrite(descriptor_, piece.data(), kPiece, static_cast<off_t>(at)) != static_cast<ssize_t>(kPiece))
        fail("cannot write 64 MiB in the folder");
    }
    if (fdatasync(descriptor_) != 0) fail("cannot write 64 MiB in the folder");
  }
  void read_back(std::vector<char>& piece) {
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
    for (std::size_t at = 0; at < kFile; at += kPiece) {
      if (pread(descriptor_, piece.data(), kPiece, static_cast<off_t>(at)) != static_cast<ssize_t>(kPiece))
        fail("cannot read back what was written in the folder");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw RunError(what + " " + json_quote(folder_) + ": " + std::strerror(errno));
  }
  std::string folder_;
  int descriptor_ = -1;
};

}  // namespace

DiskRates measure_disk(Recorder& recorder, const std::string& folder, const OpenUnnamed& open) try {
  if (recorder.world().rank() != 0) return {};
  std::vector<char> piece(kPiece, 7);
  ScratchFile file(folder, open(folder));
  Effort effort = recorder.effort().once() ? kOnce : Effort{.budget = 3, .least = 3, .most = 5};
  effort.waits = true;
  const double write = kFile / measure([&] { file.write_through(piece); }, effort).seconds;
  const double read = kFile / measure([&] { file.read_back(piece); }, effort).seconds;
  return {write, read, {}};
} catch (const RunError& failure) {
  return {.unknown = failure.what()};
}

}  // namespace penstock::profile
