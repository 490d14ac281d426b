// SPDX-License-Identifier: Apache-2.0
// The safetensors format of Hugging Face: u64 length of the header (little-endian), a JSON header, then the
// tensors' bytes back to back. {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
// "__metadata__": {...}}. Bytes are little-endian. Nothing read is trusted. No tensors here: names, element
// types, shapes and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/mapped_file.h"

namespace penstock::files {

enum class ElementType : std::uint8_t {
  Bool,
  U8,
  I8,
  F8E4M3,
  F8E5M2,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  U64,
  I64,
  F64
};

std::string_view name_of(ElementType type);  // as the format spells it: "F32", "BF16", "F8_E4M3"
std::size_t size_of(ElementType type);       // bytes of an element

struct StoredTensor {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;   // empty: a single number
  std::span<const std::byte> bytes;  // product of the shape times the element's size
};

using Metadata = std::map<std::string, std::string>;

class Safetensors {
 public:
  // Maps the file and checks the whole header. Throws InputError that names the file, the tensor or offset,
  // what was found and what was expected: a header longer than the file or than 100 MB, no JSON, names twice,
  // unknown element types, shapes whose product overflows or disagrees with the offsets, offsets that
  // overlap, leave holes, run backwards or past the end.
  explicit Safetensors(const std::string& path);

  // In the order of their bytes. Spans live as long as this object; they need not be aligned.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  std::span<const std::byte> head() const { return file_.bytes().first(head_bytes_); }  // before the tensors
  const StoredTensor* find(std::string_view name) const;  // nullptr when there is none

 private:
  MappedFile file_;
  std::size_t head_bytes_ = 0;
  std::vector<StoredTensor> tensors_;
  Metadata metadata_;
};

// Writes the tensors atomically (AtomicFile). Those with larger elements come first, so that all are aligned;
// otherwise the given order stays. Names must differ and sizes agree with shapes (broken invariants
// otherwise). Gives the bytes that stand before the tensors, as Safetensors::head() will.
std::string write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                              const Metadata& metadata = {});

// The same with the bytes made one tensor at a time: `tensors` have names, types and shapes, and no bytes;
// `write_bytes` writes those of a tensor to the file by as many calls of the sink as it likes.
using ByteSink = std::function<void(std::span<const std::byte>)>;
std::string write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                              const Metadata& metadata,
                              const std::function<void(const StoredTensor&, const ByteSink&)>& write_bytes);

}  // namespace penstock::files
