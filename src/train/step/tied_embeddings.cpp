// SPDX-License-Identifier: Apache-2.0
#include "train/step/tied_embeddings.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>

#include <vector>

#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/parameters/parameter_maker.h"
#include "schedule/program.h"

namespace penstock::train {
namespace {

// One entry per shard on this rank.
struct Sides {
  std::vector<nn::Parameter*> input, output;
};

Sides sides_on(std::map<int, nn::Stage>& stages) {
  Sides sides;
  for (auto& [number, stage] : stages) {
    for (nn::Parameter& parameter : stage.parameters()) {
      if (parameter.tied) sides.output.push_back(&parameter);
      if (parameter.name == nn::kEmbeddingName) sides.input.push_back(&parameter);
    }
  }
  return sides;
}

constexpr int kTiedChannel = static_cast<int>(schedule::Channel::Gradients);

void add_here(nn::Parameter& input_side, nn::Parameter& output_side) {
  at::Tensor input = input_side.own_part(input_side.gradient);
  at::Tensor output = output_side.own_part(output_side.gradient);
  input.add_(output);
  output.copy_(input);
}

}  // namespace

void meet_tied_side(int peer, comm::Pipeline pipeline) {
  comm::Request theirs = pipeline->receive({}, peer, kTiedChannel);
  comm::Request mine = pipeline->send({}, peer, kTiedChannel);
  theirs.wait();
  mine.wait();
}

void reduce_tied_gradients(std::map<int, nn::Stage>& stages, int peer, comm::Pipeline pipeline) {
  const Sides sides = sides_on(stages);
  if (peer < 0) {
    PENSTOCK_CHECK(sides.input.size() == sides.output.size(),
                   "a device that reduces alone has both sides of a tied embedding");
    for (std::size_t i = 0; i < sides.input.size(); ++i) add_here(*sides.input[i], *sides.output[i]);
    return;
  }
  const bool input_side = !sides.input.empty();
  for (nn::Parameter* side : input_side ? sides.input : sides.output) {
    at::Tensor mine = side->own_part(side->gradient);
    const at::Tensor theirs = at::empty_like(mine);
    comm::Request received = pipeline->receive(nn::bytes_of_tensor(theirs), peer, kTiedChannel);
    comm::Request sent = pipeline->send(nn::bytes_of_tensor(mine), peer, kTiedChannel);
    received.wait();
    sent.wait();
    at::add_out(mine, input_side ? mine : theirs, input_side ? theirs : mine);
  }
}

}  // namespace penstock::train
