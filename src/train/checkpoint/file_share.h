// SPDX-License-Identifier: Apache-2.0
// A rank's share of a safetensors file of whole tensors. All ranks write the file together; its bytes are the
// same for every mesh.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "files/safetensors.h"
#include "nn/parameters/parameter.h"

namespace penstock::train {

// A rank's elements of one tensor, contiguous in memory: the live tensor's, or a copy's.
struct TensorShare {
  std::size_t tensor = 0;           // index in the file
  std::size_t element = 0;          // bytes
  std::vector<mesh::Range> ranges;  // of the whole tensor's elements, ascending
  std::size_t size = 0;             // bytes of all ranges
  at::Tensor values;                // of the ranges in order; padding may follow. Undefined for a copy
  std::span<const std::byte> copy;  // a copy's bytes; else empty
};

// The current bytes of a share, in host memory while this object lives.
class SharedBytes {
 public:
  explicit SharedBytes(const TensorShare& share);
  std::span<const std::byte> get() const { return bytes_; }

 private:
  at::Tensor values_;
  std::span<const std::byte> bytes_;
};

struct FileShare {
  std::vector<files::StoredTensor> whole;  // the file's tensors, without bytes
  files::SafetensorsLayout layout;
  std::vector<TensorShare> tensors;
};

// A parameter that this rank writes a part of, and its master or a moment.
struct TensorSource {
  const nn::Parameter* parameter = nullptr;
  at::Tensor values;
};
using OwnedTensors = std::multimap<std::string, TensorSource>;  // by name in the file; one per own shard

// `whole`: the file's tensors without their bytes. The shares refer to the sources' memory.
FileShare share_of_file(const std::vector<files::StoredTensor>& whole, const OwnedTensors& owned);

// Calls visit(offset in the file, bytes) for each contiguous run of the share, in pieces of at most 8 MiB.
void for_pieces(const FileShare& share,
                const std::function<void(std::uint64_t, std::span<const std::byte>)>& visit);

// Writes the share to the file, with the file's header if it has the first element, and flushes it. A rank
// without a share does not touch the file. `after_piece` is called after each piece; may be empty; its
// exceptions end the writing. Throws RunError naming the path.
void write_share(const std::string& path, const FileShare& share,
                 const std::function<void()>& after_piece = {});

// Word sums of the share, one per tensor of the file; 0 without a share. Added over all ranks (add_word_sums)
// they are the tensors' sums.
std::vector<std::uint64_t> word_sums_of(const FileShare& share);

}  // namespace penstock::train
