// SPDX-License-Identifier: Apache-2.0
#include "train/step/tied_embeddings.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>

#include "base/error.h"
#include "nn/tensor_bytes.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

struct Sides {
  nn::Parameter* input = nullptr;
  nn::Parameter* output = nullptr;
};

Sides sides_on(std::map<int, nn::Stage>& stages) {
  Sides sides;
  for (auto& [number, stage] : stages) {
    for (nn::Parameter& parameter : stage.parameters()) {
      if (parameter.tied) sides.output = &parameter;
      if (parameter.name == "model.embed_tokens.weight") sides.input = &parameter;
    }
  }
  return sides;
}

}  // namespace

void reduce_tied_gradients(std::map<int, nn::Stage>& stages, int peer, comm::Pipeline pipeline) {
  const Sides sides = sides_on(stages);
  if (peer < 0) {
    PENSTOCK_CHECK(sides.input && sides.output,
                   "a device that reduces alone has both sides of a tied embedding");
    at::Tensor input = sides.input->own_part(sides.input->gradient);
    at::Tensor output = sides.output->own_part(sides.output->gradient);
    input.add_(output);
    output.copy_(input);
    return;
  }
  const nn::Parameter& side = sides.input ? *sides.input : *sides.output;
  at::Tensor mine = side.own_part(side.gradient);
  at::Tensor theirs = at::empty_like(mine);
  constexpr int channel = static_cast<int>(schedule::Channel::Gradients);
  comm::Request received = pipeline->receive(bytes_of_tensor(theirs), peer, channel);
  comm::Request sent = pipeline->send(bytes_of_tensor(mine), peer, channel);
  received.wait();
  sent.wait();
  const bool input_side = sides.input != nullptr;
  at::add_out(mine, input_side ? mine : theirs, input_side ? theirs : mine);
}

}  // namespace penstock::train
