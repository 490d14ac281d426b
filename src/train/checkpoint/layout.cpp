// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/layout.h"

#include <cstdio>
#include <map>

#include "base/text.h"
#include "files/model_weights.h"

namespace penstock::train {
namespace {

constexpr std::string_view kWeightsPart = "model-", kMomentsPart = "optimizer-";

std::string padded(std::int64_t number, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*lld", digits, static_cast<long long>(number));
  return text;
}

// The embedding is part 0, layer k is part k + 1, the final norm and output matrix are the last part.
std::int64_t part_of(const std::string& parameter, const model::Shape& shape) {
  constexpr std::string_view layers = "model.layers.";
  if (!parameter.starts_with(layers)) return parameter == model::kEmbeddingName ? 0 : shape.layers + 1;
  const std::string_view rest = std::string_view(parameter).substr(layers.size());
  return *parse_integer(rest.substr(0, rest.find('.'))) + 1;
}

}  // namespace

std::string kept_name(const std::string& parameter, Kept kept) {
  if (kept == Kept::Weight) return parameter;
  return parameter + (kept == Kept::FirstMoment ? ".first_moment" : ".second_moment");
}

std::vector<CheckpointFile> checkpoint_files(const model::Shape& shape) {
  const std::int64_t parts = shape.layers + 2;
  std::vector<CheckpointFile> files;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::string number = padded(part + 1, 5) + "-of-" + padded(parts, 5) + ".safetensors";
    files.push_back({.name = std::string(kWeightsPart) + number});
    files.push_back({.name = std::string(kMomentsPart) + number});
  }
  for (const std::string& parameter : model::parameter_names(shape)) {
    const auto first = static_cast<std::size_t>(2 * part_of(parameter, shape));
    for (const Kept kept : {Kept::Weight, Kept::FirstMoment, Kept::SecondMoment}) {
      CheckpointFile& file = files[kept == Kept::Weight ? first : first + 1];
      file.tensors.push_back({kept_name(parameter, kept), parameter, kept});
    }
  }
  return files;
}

bool has_weights(std::string_view file) { return file.starts_with(kWeightsPart); }

std::string weight_index(const std::vector<CheckpointFile>& files) {
  std::map<std::string, std::string> file_of;
  for (const CheckpointFile& file : files) {
    for (const CheckpointTensor& tensor : file.tensors) {
      if (tensor.kept == Kept::Weight) file_of[tensor.name] = file.name;
    }
  }
  return files::print_weight_map(file_of, {});
}

std::string checkpoint_name(std::int64_t step) { return "step-" + padded(step, 6); }

}  // namespace penstock::train
