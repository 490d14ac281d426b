// SPDX-License-Identifier: Apache-2.0
#include "nn/parameters/parameter.h"

#include <functional>
#include <numeric>

namespace penstock::nn {

std::vector<std::int64_t> Parameter::held_sizes() const {
  std::vector<std::int64_t> held = sizes;
  held[static_cast<std::size_t>(shard.dimension)] = shard.held;
  return held;
}

std::int64_t Parameter::elements() const {
  const std::vector<std::int64_t> held = held_sizes();
  return std::reduce(held.begin(), held.end(), std::int64_t{1}, std::multiplies());
}

at::Tensor Parameter::own_part(const at::Tensor& tensor) const {
  if (sharding.shards == 1) return tensor;
  const mesh::Shard own = share();
  const at::Tensor flat = tensor.view({-1});
  return flat.numel() == own.count ? flat : flat.narrow(0, own.begin, own.count);
}

mesh::Shard Parameter::written() const {
  if (shard.copy > 0) return {};  // its owner writes it
  return mesh::written_share(elements(), sharding);
}

at::Tensor Parameter::written_part(const at::Tensor& own) const {
  const mesh::Shard part = written();
  return own.view({-1}).narrow(0, part.count > 0 ? part.begin - share().begin : 0, part.count);
}

void weight_from_master(Parameter& parameter) {
  if (!parameter.weight.defined() || parameter.weight.is_alias_of(parameter.master)) return;
  parameter.own_part(parameter.weight).copy_(parameter.master);
}

}  // namespace penstock::nn
