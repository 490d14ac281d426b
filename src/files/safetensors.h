// SPDX-License-Identifier: Apache-2.0
// Hugging Face's safetensors format: u64 length of the header (little-endian), a JSON header, then the
// tensors' bytes back to back. {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
// "__metadata__": {...}}. Bytes are little-endian. All input is validated. Holds no tensors, only names,
// element types, shapes and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/input_file.h"
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

std::string_view name_of(ElementType type);  // the format's spelling: "F32", "BF16", "F8_E4M3"
std::size_t size_of(ElementType type);       // bytes per element

struct StoredTensor {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<std::int64_t> shape;   // empty: a scalar
  std::span<const std::byte> bytes;  // product of the shape times the element size
};

using Metadata = std::map<std::string, std::string>;

class Safetensors {
 public:
  // Maps the file and checks the whole header. Throws InputError naming the file, the tensor or offset, and
  // the found and expected values: a header longer than the file or than 100 MB, not JSON, duplicate names,
  // unknown element types, shapes whose product overflows or disagrees with the offsets, offsets that
  // overlap, leave holes, run backwards or exceed the file.
  explicit Safetensors(const std::string& path) : Safetensors(InputFile(path)) {}
  explicit Safetensors(InputFile&& file) : Safetensors(file) {}
  explicit Safetensors(InputFile& file);  // which may be closed afterwards

  // In byte order. Spans live as long as this object; they need not be aligned.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  std::string_view head() const { return head_; }         // the bytes before the tensors
  const StoredTensor* find(std::string_view name) const;  // nullptr if missing

  // Offset of one of tensors() in the file, for reading it through an InputFile.
  std::uint64_t begin_of(const StoredTensor& tensor) const;

 private:
  std::string path_;
  MappedFile file_;
  std::string head_;
  std::vector<StoredTensor> tensors_;
  Metadata metadata_;
};

// The layout of a file, for writing it in parts.
struct SafetensorsLayout {
  std::string head;                   // the bytes before the tensors
  std::vector<std::uint64_t> begins;  // per tensor in the given order, from the start of the file
  std::uint64_t size = 0;             // of the file
};

// Uses names, types and shapes of `tensors`, not their bytes. Larger elements come first, so that all are
// aligned; otherwise the given order is kept. Names must differ.
SafetensorsLayout lay_out_safetensors(std::span<const StoredTensor> tensors, const Metadata& metadata = {});

// Writes the tensors in this layout, atomically (AtomicFile). Sizes must match shapes.
void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata = {});

// The same with bytes produced one tensor at a time: `tensors` have names, types and shapes only;
// `write_bytes` writes one tensor to the file with any number of calls of the sink.
using ByteSink = std::function<void(std::span<const std::byte>)>;
void write_safetensors(const std::string& path, std::span<const StoredTensor> tensors,
                       const Metadata& metadata,
                       const std::function<void(const StoredTensor&, const ByteSink&)>& write_bytes);

}  // namespace penstock::files
