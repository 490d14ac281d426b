// SPDX-License-Identifier: Apache-2.0
#include "train/gather_weights.h"

#include <ATen/ops/empty.h>

#include <array>

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

}  // namespace

void gather_weights(const std::vector<std::string>& names, std::map<int, nn::Stage>& stages,
                    comm::Communicator& pipeline,
                    const std::function<void(const std::string&, const at::Tensor&)>& visit) {
  std::map<std::string, at::Tensor> mine;
  for (auto& [number, stage] : stages) {
    for (const nn::Parameter& parameter : stage.parameters()) {
      if (parameter.replica == nn::Replica::None) mine.emplace(parameter.name, parameter.master);
    }
  }
  std::vector<std::int64_t> owner(names.size(), -1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (mine.contains(names[i])) owner[i] = pipeline.rank();
  }
  pipeline.all_reduce(owner.data(), owner.size(), comm::Type::I64, comm::Reduction::Max);
  for (std::size_t i = 0; i < names.size(); ++i) {
    PENSTOCK_CHECK(owner[i] >= 0, "every parameter lives on some rank");
    const bool here = owner[i] == pipeline.rank();
    if (here && pipeline.rank() != 0) send_tensor(mine.at(names[i]), pipeline);
    if (pipeline.rank() == 0)
      visit(names[i], here ? mine.at(names[i]) : receive_tensor(static_cast<int>(owner[i]), pipeline));
  }
}

}  // namespace penstock::train
