// SPDX-License-Identifier: Apache-2.0
// Temporarily frees a tensor's memory: the tensor and its views remain, without bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <span>

#include "base/units.h"

namespace penstock::backend {

// Used on the tensors' thread. The tensors must not be read or written between leave() and come_back(). The
// bytes count as Activations; in between only those that stay do, in a block of their own.
class ParkedStorage {
 public:
  // The first `leaving` bytes of the storage leave; at least 1, at most all.
  ParkedStorage(c10::Storage storage, Bytes leaving);

  Bytes leaving() const { return leaving_; }

  // The bytes that will leave. Valid until leave().
  std::span<const std::byte> front() const;

  // Frees the memory. Call after copying the bytes elsewhere.
  void leave();

  // Allocates the memory again and restores the bytes that stayed. Returns the others for the caller to fill;
  // they live as long as the storage.
  std::span<std::byte> come_back();

 private:
  c10::Storage storage_;
  Bytes leaving_;
  at::Tensor rest_;  // the bytes that stay, after leave(); undefined if all leave
};

}  // namespace penstock::backend
