// SPDX-License-Identifier: Apache-2.0
#include "train/gather_weights.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <array>
#include <map>

#include "base/error.h"
#include "schedule/program.h"
#include "train/tensor_bytes.h"

namespace penstock::train {
namespace {

constexpr int kChannel = static_cast<int>(schedule::Channel::Control);

// What the first rank must know before the values: [rank of the tensor, dimension 0, dimension 1, element
// type].
using Description = std::array<std::int64_t, 4>;

Description describe(const at::Tensor& tensor) {
  return {tensor.dim(), tensor.size(0), tensor.dim() > 1 ? tensor.size(1) : 1,
          static_cast<std::int64_t>(tensor.scalar_type())};
}

at::Tensor empty_like(const Description& description) {
  const auto options = at::dtype(static_cast<at::ScalarType>(description[3]));
  if (description[0] == 1) return at::empty({description[1]}, options);
  return at::empty({description[1], description[2]}, options);
}

void send_tensor(const at::Tensor& tensor, comm::Communicator& pipeline) {
  const Description description = describe(tensor);
  comm::Request first = pipeline.send(comm::bytes_of(description), 0, kChannel);
  comm::Request second = pipeline.send(bytes_of_tensor(tensor), 0, kChannel);
  first.wait();
  second.wait();
}

at::Tensor receive_tensor(int owner, comm::Communicator& pipeline) {
  Description description{};
  pipeline.receive(comm::writable_bytes_of(description), owner, kChannel).wait();
  at::Tensor tensor = empty_like(description);
  pipeline.receive(bytes_of_tensor(tensor), owner, kChannel).wait();
  return tensor;
}

std::map<std::string, at::Tensor> owned(const std::vector<nn::Parameter*>& parameters) {
  std::map<std::string, at::Tensor> owned;
  for (const nn::Parameter* parameter : parameters) {
    if (parameter->replica == nn::Replica::None)
      owned.emplace(parameter->name, parameter->unpadded(parameter->master));
  }
  return owned;
}

}  // namespace

void gather_weights(const std::vector<std::string>& names, const std::vector<nn::Parameter*>& parameters,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit) {
  gather_tensors(names, owned(parameters), pipeline, visit);
}

void gather_tensors(const std::vector<std::string>& names, const std::map<std::string, at::Tensor>& mine,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit) {
  std::vector<std::uint8_t> own_names;
  for (const std::string& name : names) own_names.push_back(mine.contains(name));
  std::vector<std::uint8_t> holds(names.size() * static_cast<std::size_t>(pipeline.size()));
  pipeline.all_gather(std::as_bytes(std::span(own_names)), std::as_writable_bytes(std::span(holds)));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto is_on = [&](int rank) {
      return holds[static_cast<std::size_t>(rank) * names.size() + i] != 0;
    };
    if (pipeline.rank() != 0) {
      if (is_on(pipeline.rank())) send_tensor(mine.at(names[i]), pipeline);
      continue;
    }
    std::vector<at::Tensor> parts;
    for (int rank = 0; rank < pipeline.size(); ++rank) {
      if (is_on(rank)) parts.push_back(rank == 0 ? mine.at(names[i]) : receive_tensor(rank, pipeline));
    }
    PENSTOCK_CHECK(!parts.empty(), "every parameter lives on some rank");
    visit(names[i], parts.size() == 1 ? parts.front() : at::cat(parts));
  }
}

}  // namespace penstock::train
