// SPDX-License-Identifier: Apache-2.0
// Where each query's document begins among the keys of a chunk.
#pragma once

#include "base/error.h"
#include "nn/kernels/attention.h"

namespace penstock::nn::kernels {

// First key that each query sees, counted from the chunk's first key. Ascending within a sequence; negative
// if the document begins before the chunk.
class FirstKeys {
 public:
  explicit FirstKeys(const Visible& visible)
      : starts_(visible.starts.defined() ? visible.starts.const_data_ptr<std::int64_t>() : nullptr),
        stride_(starts_ ? visible.starts.stride(0) : 0),
        first_key_(visible.first_key) {
    PENSTOCK_CHECK(!starts_ || visible.starts.stride(1) == 1, "starts are read as contiguous rows");
  }

  bool all() const { return starts_ == nullptr; }
  std::int64_t of(std::int64_t sequence, std::int64_t query) const {
    return starts_ ? starts_[sequence * stride_ + query] - first_key_ : 0;
  }

 private:
  const std::int64_t* starts_;
  std::int64_t stride_, first_key_;
};

}  // namespace penstock::nn::kernels
