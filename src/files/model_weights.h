// SPDX-License-Identifier: Apache-2.0
// The weights of a model in safetensors: one file, or a folder in Hugging Face's layout. All input is
// validated. Holds no tensors, only names, element types, shapes and mapped bytes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"
#include "model/shape.h"

namespace penstock::files {

// What a folder's weights are read by: its model.safetensors.index.json, or its model.safetensors, or its
// weights.safetensors; empty if it has none of them.
std::string weights_in(const std::string& folder);

class ModelWeights {
 public:
  // Maps a .safetensors file, or that of a folder, or all files that its index names. Bytes are read on
  // access. Throws InputError naming the file and the fault: none of these exists, or the index is damaged,
  // names a missing file or tensor, or misses a tensor of a file.
  explicit ModelWeights(const std::string& path);

  const std::string& path() const { return path_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr if missing

  // Visits the bytes of a tensor that find() returned, in order (InputFile::read). Throws InputError where
  // they cannot be read. Any thread.
  void read(const StoredTensor& tensor, const InputFile::Visit& visit) const;

  // Throws InputError listing tensors that are missing, unknown, of the wrong shape or not floating-point.
  // Ignores tables of rotary frequencies, and the output matrix of tied embeddings, which must be the
  // embedding's copy: versions of transformers differ in which one they use.
  void check(const model::Shape& shape) const;

 private:
  void map_folder();
  void map_index(const std::string& index);
  const Safetensors& file_of(const StoredTensor& tensor) const;
  bool are_equal(const StoredTensor& a, const StoredTensor& b) const;

  std::string path_;
  std::vector<Safetensors> files_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

// Returns the file of each tensor in an index, {"weight_map": {"name": "file"}}. Throws InputError that
// begins with `origin`: not JSON, no weight_map, files outside the index's own folder.
std::map<std::string, std::string> parse_weight_map(std::string_view json, std::string_view origin);

// Prints the index of the given map; `total_bytes`: of all tensors, if it is to say so.
std::string print_weight_map(const std::map<std::string, std::string>& files,
                             std::optional<std::uint64_t> total_bytes);

}  // namespace penstock::files
