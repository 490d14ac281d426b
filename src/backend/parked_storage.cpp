// SPDX-License-Identifier: Apache-2.0
#include "backend/parked_storage.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <utility>

#include "backend/copy.h"
#include "backend/memory.h"
#include "base/error.h"

namespace penstock::backend {
namespace {

std::byte* bytes_of(const c10::Storage& storage) {
  return static_cast<std::byte*>(const_cast<void*>(storage.data()));
}

}  // namespace

ParkedStorage::ParkedStorage(c10::Storage storage, Bytes leaving)
    : storage_(std::move(storage)), leaving_(leaving) {
  PENSTOCK_CHECK(leaving > 0 && leaving <= static_cast<Bytes>(storage_.nbytes()),
                 "what leaves is a part of what is there");
}

std::span<const std::byte> ParkedStorage::front() const {
  return {bytes_of(storage_), static_cast<std::size_t>(leaving_)};
}

void ParkedStorage::leave() {
  const auto staying = static_cast<std::int64_t>(storage_.nbytes()) - leaving_;
  if (staying > 0) {
    rest_ = at::empty({staying}, at::dtype(at::kByte).device(storage_.device()));
    copy_bytes(rest_.data_ptr(), bytes_of(storage_) + leaving_, static_cast<std::size_t>(staying));
  }
  storage_.set_data_ptr_noswap(at::DataPtr(nullptr, storage_.device()));
  recount(rest_, Category::Activations);
}

std::span<std::byte> ParkedStorage::come_back() {
  storage_.set_data_ptr_noswap(c10::GetAllocator(storage_.device_type())->allocate(storage_.nbytes()));
  if (rest_.defined()) {
    copy_bytes(bytes_of(storage_) + leaving_, rest_.data_ptr(), storage_.nbytes() - leaving_);
    rest_.reset();
  }
  recount(storage_, Category::Activations);
  return {bytes_of(storage_), static_cast<std::size_t>(leaving_)};
}

}  // namespace penstock::backend
