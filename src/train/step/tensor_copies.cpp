// SPDX-License-Identifier: Apache-2.0
#include "train/step/tensor_copies.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backend/device.h"
#include "base/error.h"

namespace penstock::train {
namespace {

// This rank's copies of one parameter, with the part of the tensor that each is a copy of.
struct Copies {
  std::int64_t parts = 1;  // different parts of the whole tensor: 1 for a norm, else the key heads
  std::vector<std::pair<std::int64_t, nn::Parameter*>> own;  // in the order of the shards
};

bool has_copies(const nn::Parameter& parameter, int shards) {
  if (shards == 1) return false;
  const mesh::Cut cut = mesh::cut_of(parameter.name);
  if (cut == mesh::Cut::Whole) return true;
  const std::int64_t parts = parameter.sizes[0] / std::max<std::int64_t>(parameter.shard.count, 1);
  return cut == mesh::Cut::KeyHeads && parts < shards;
}

// Adds each rank's shards first, as a tree, then the ranks.
void sum_copies(const Copies& copies, comm::Communicator& ranks) {
  const nn::Parameter& first = *copies.own.front().second;
  const at::Tensor like = first.own_part(first.gradient);
  std::vector<at::Tensor> addends;  // [shard], zeros for other parts
  for (const auto& [part, parameter] : copies.own) {
    at::Tensor addend = at::zeros({copies.parts, like.numel()}, like.options());
    addend.select(0, part).copy_(parameter->own_part(parameter->gradient).view({-1}));
    addends.push_back(addend);
  }
  for (std::size_t apart = 1; apart < addends.size(); apart *= 2) {
    for (std::size_t i = 0; i + apart < addends.size(); i += 2 * apart) addends[i].add_(addends[i + apart]);
  }
  const comm::Type type = like.scalar_type() == at::kDouble ? comm::Type::F64 : comm::Type::F32;
  at::Tensor& sum = addends.front();
  comm::as_part_of("the sum of " + first.name + " over tensor ranks", [&] {
    backend::change_on_host(sum, [&](const at::Tensor& values) {
      ranks.all_reduce(values.mutable_data_ptr(), static_cast<std::size_t>(values.numel()), type,
                       comm::Reduction::Sum);
    });
  });
  for (const auto& [part, parameter] : copies.own) {
    at::Tensor own = parameter->own_part(parameter->gradient);
    own.copy_(sum.select(0, part).view(own.sizes()));
  }
}

}  // namespace

void sum_tensor_copies(const std::vector<nn::Parameter*>& parameters, nn::TensorGroup& group) {
  std::vector<std::pair<std::string, Copies>> all;
  for (nn::Parameter* parameter : parameters) {
    if (!has_copies(*parameter, group.shards())) continue;
    auto place = std::ranges::find(all, parameter->name, &std::pair<std::string, Copies>::first);
    if (place == all.end()) place = all.insert(all.end(), {parameter->name, {}});
    Copies& copies = place->second;
    copies.parts = parameter->sizes[0] / parameter->shard.count;
    copies.own.emplace_back(parameter->shard.begin / parameter->shard.count, parameter);
  }
  for (const auto& [name, copies] : all) sum_copies(copies, group.communicator());
}

}  // namespace penstock::train
