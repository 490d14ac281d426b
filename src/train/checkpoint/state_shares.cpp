// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/state_shares.h"

#include <algorithm>
#include <map>

#include "model/parameters.h"
#include "train/checkpoint/weights_file.h"

namespace penstock::train {
namespace {

OwnedTensors tensors_of(Trainer& trainer) {
  OwnedTensors owned;
  for (const Optimizer::Entry& entry : trainer.optimizer().entries()) {
    const nn::Parameter& parameter = *entry.parameter;
    if (parameter.written().count == 0) continue;
    owned.emplace(kept_name(parameter.name, Kept::Weight), TensorSource{&parameter, parameter.master});
    owned.emplace(kept_name(parameter.name, Kept::FirstMoment), TensorSource{&parameter, entry.first_moment});
    owned.emplace(kept_name(parameter.name, Kept::SecondMoment),
                  TensorSource{&parameter, entry.second_moment});
  }
  return owned;
}

std::vector<RangeRun> runs_of(const std::vector<mesh::Range>& ranges) {
  std::vector<RangeRun> runs;
  for (const mesh::Range& range : ranges) {
    if (!runs.empty() && runs.back().count == range.count) {
      RangeRun& last = runs.back();
      const std::int64_t stride = range.begin - (last.first + last.stride * (last.times - 1));
      if (last.times == 1) last.stride = stride;
      if (last.stride == stride) {
        ++last.times;
        continue;
      }
    }
    runs.push_back({.first = range.begin, .count = range.count});
  }
  return runs;
}

}  // namespace

std::vector<FileShare> shares_of_state(const std::vector<CheckpointFile>& files, const model::Shape& shape,
                                       Trainer& trainer) {
  const OwnedTensors owned = tensors_of(trainer);
  std::map<std::string, std::vector<std::int64_t>> sizes;
  for (model::ParameterShape& parameter : model::parameter_shapes(shape))
    sizes[parameter.name] = std::move(parameter.sizes);
  const files::ElementType type = element_type(trainer.parameters().front()->master);
  std::vector<FileShare> shares;
  for (const CheckpointFile& file : files) {
    std::vector<files::StoredTensor> whole;
    for (const CheckpointTensor& tensor : file.tensors)
      whole.push_back({tensor.name, type, sizes.at(tensor.parameter), {}});
    shares.push_back(share_of_file(whole, owned));
  }
  return shares;
}

std::vector<CopiedTensor> copied_tensors(const std::vector<FileShare>& shares) {
  std::vector<CopiedTensor> tensors;
  for (const FileShare& file : shares) {
    for (const TensorShare& share : file.tensors) {
      const files::StoredTensor& whole = file.whole[share.tensor];
      tensors.push_back({whole.name, whole.type, whole.shape, runs_of(share.ranges)});
    }
  }
  return tensors;
}

Bytes bytes_in(const std::vector<FileShare>& shares) {
  Bytes size = 0;
  for (const FileShare& file : shares) {
    for (const TensorShare& tensor : file.tensors) size += static_cast<Bytes>(tensor.size);
  }
  return size;
}

std::byte* copy_shares(const std::vector<FileShare>& shares, std::byte* to) {
  for (const FileShare& file : shares) {
    for (const TensorShare& tensor : file.tensors) to = std::ranges::copy(SharedBytes(tensor).get(), to).out;
  }
  return to;
}

}  // namespace penstock::train
