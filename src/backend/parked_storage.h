// SPDX-License-Identifier: Apache-2.0
// Memory of a tensor moved away temporarily: the tensor and its views stay, without bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/units.h"

namespace penstock::backend {

// Used on the thread of the tensors. While away they must not be read or written. The bytes count as
// Activations; while away only those that stay do, in a block of their own.
class ParkedStorage {
 public:
  // The first `leaving` bytes of the storage leave; at least 1, at most all.
  ParkedStorage(c10::Storage storage, Bytes leaving);

  Bytes leaving() const { return leaving_; }

  // The bytes that leave, until leave().
  std::span<const std::byte> front() const;

  // Frees the memory; call after the bytes are copied elsewhere.
  void leave();

  // Allocates memory again, with the bytes that stayed in place. Returns the others, to be filled in; they
  // live as long as the storage.
  std::span<std::byte> come_back();

 private:
  c10::Storage storage_;
  Bytes leaving_;
  at::Tensor rest_;  // the bytes that stay, while the others are away; undefined when all leave
};

}  // namespace penstock::backend
