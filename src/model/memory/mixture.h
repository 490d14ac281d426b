// SPDX-License-Identifier: Apache-2.0
// Memory of a layer's experts on one rank, in the order of nn/experts/mixture.cpp. A token has a row for each
// of its experts, on whichever rank. Assumes balanced routing for products and their scratch.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/policy.h"
#include "model/memory/tape.h"

namespace penstock::model {

class MixtureTape {
 public:
  // `tokens`: per rank. If several `ranks` split the experts, each sends and receives the same number of
  // rows. The references must outlive the tape.
  MixtureTape(Tape& tape, const KernelSetting& setting, const Shape& shape, Tokens tokens, int ranks);

  // Leaves the routing, the saved tensors and the output.
  void forward();

  // Leaves the tensors that `have` lacks, the pending operands and the gradient of the input.
  void backward(KeepSet have);

  // Operands of the weight products that backward() makes, without Dispatched, Product and GateUp (now the
  // gradients of gate and up). form_weight_gradients() adds the scratch, while all operands are alive.
  Bytes pending_gradients() const;
  void form_weight_gradients();

 private:
  Bytes rows(std::int64_t width) const { return tokens_ * shape_.experts_per_token * width * element_; }
  Bytes row_weights() const { return tokens_ * shape_.experts_per_token * accumulator_; }
  Bytes scores() const { return tokens_ * shape_.experts * accumulator_; }
  Bytes routing() const;
  // Rows being sent while others arrive, or received rows in arrival order.
  Bytes travelling() const { return ranks_ > 1 ? rows(shape_.hidden) : 0; }
  bool shares() const { return shape_.shared_ffn > 0; }
  Bytes shared() const { return tokens_ * shape_.shared_ffn * element_; }
  Bytes hidden() const { return tokens_ * shape_.hidden * element_; }
  // The router's operands in the accumulator type: its input or the input's gradient, and its weights.
  Bytes widened_tokens() const { return tokens_ * shape_.hidden * accumulator_; }
  Bytes widened_router() const {
    return setting_.narrow() ? shape_.experts * shape_.hidden * accumulator_ : 0;
  }
  Tokens rows_of_expert() const;
  void complete(KeepSet have);
  void take_product(std::int64_t in, std::int64_t out);
  void complete_shared();
  void add_shared();
  void add_shared_backward(KeepSet have);

  Tape& tape_;
  const KernelSetting& setting_;
  const Shape& shape_;
  Tokens tokens_;
  int ranks_;
  Bytes element_, accumulator_;
};

}  // namespace penstock::model
