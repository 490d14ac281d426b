// SPDX-License-Identifier: Apache-2.0
// Bytes put aside on a disk for a while: a file without a name, which the system removes when the process
// ends, also when it is killed.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/units.h"

namespace penstock::files {

// All calls throw RunError that names `name`, the bytes wanted and the system's reason. write() and read()
// may come from several threads at once, for ranges that do not overlap.
class SpillFile {
 public:
  // In the directory, which exists; room for `bytes` is set aside at once, where the disk can do that.
  // `name` is what messages call the file: its directory and whose it is.
  SpillFile(const std::string& directory, std::string name, Bytes bytes);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  void write(Bytes offset, std::span<const std::byte> bytes) const;
  void read(Bytes offset, std::span<std::byte> bytes) const;  // what was written there

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace penstock::files
