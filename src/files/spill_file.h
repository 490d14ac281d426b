// SPDX-License-Identifier: Apache-2.0
// Temporary storage on disk: an unnamed file, which the system removes when the process ends, even when
// killed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/units.h"

namespace penstock::files {

// All calls throw RunError naming `name`, the number of bytes and the system's reason. write() and read() may
// be called from several threads at once, for ranges that do not overlap.
class SpillFile {
 public:
  // `directory` must exist. Reserves `bytes` at once if the disk supports it. Errors call the file `name`,
  // which tells its directory and owner.
  SpillFile(const std::string& directory, std::string name, Bytes bytes);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  void write(Bytes offset, std::span<const std::byte> bytes) const;
  void read(Bytes offset, std::span<std::byte> bytes) const;  // bytes written earlier at this offset

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace penstock::files
