// SPDX-License-Identifier: Apache-2.0
// The weights of a model in safetensors: one file, or the files of a folder in Hugging Face's form. Nothing
// read is trusted. No tensors here: names, element types, shapes and mapped bytes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/safetensors.h"
#include "model/shape.h"

namespace penstock::files {

class ModelWeights {
 public:
  // Maps a .safetensors file, or all files of a folder that model.safetensors.index.json names, or its
  // model.safetensors, or its weights.safetensors. Bytes are read when touched. Throws InputError naming the
  // file and what is wrong: none of these is there, an index that is damaged, names a missing file, misses a
  // tensor of a file or names one that is not there.
  explicit ModelWeights(const std::string& path);

  const std::string& path() const { return path_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr when there is none

  // Throws InputError that names the tensors that are missing, of another shape, of a type that is no
  // floating-point number, or not known. Passed over are what transformers passes over too: tables of rotary
  // frequencies, and the output matrix of tied embeddings.
  void check(const model::Shape& shape) const;

 private:
  void map_folder();
  void map_index(const std::string& index);

  std::string path_;
  std::vector<Safetensors> files_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

// The files that an index names for each tensor, {"weight_map": {"name": "file"}}. Throws InputError that
// begins with `origin`: no JSON, no weight_map, files that are not in the index's own folder.
std::map<std::string, std::string> parse_weight_map(std::string_view json, std::string_view origin);

// The index of the given map; `total_bytes` are the tensors' own.
std::string print_weight_map(const std::map<std::string, std::string>& files, std::uint64_t total_bytes);

}  // namespace penstock::files
