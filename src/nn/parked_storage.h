// SPDX-License-Identifier: Apache-2.0
// A tensor's memory that is away for a while: the tensor and its views stay, without bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/units.h"

namespace penstock::nn {

// On the thread of the tensors. While away, nobody may read or write them. Bytes count as Activations before
// and after; while away only those that stayed do, in a block of their own.
class ParkedStorage {
 public:
  // Of the storage the first `leaving` bytes are to leave, from 1 to all.
  ParkedStorage(c10::Storage storage, Bytes leaving);

  // The bytes that leave, until leave().
  std::span<const std::byte> front() const;

  // They have been copied elsewhere: frees the memory.
  void leave();

  // Takes memory again, with the bytes that stayed in place; the others, to be filled in, are returned and
  // live as long as the storage.
  std::span<std::byte> come_back();

 private:
  c10::Storage storage_;
  Bytes leaving_;
  at::Tensor rest_;  // the bytes that stay, while the others are away; undefined when all leave
};

}  // namespace penstock::nn
