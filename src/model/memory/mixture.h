// SPDX-License-Identifier: Apache-2.0
// Memory of a layer's experts on one rank, in the order of nn/experts/mixture.cpp. A token has a row for each
// of its experts, wherever they are; products and their scratch are those of balanced routing.
#pragma once

#include "model/memory/kernels.h"
#include "model/memory/policy.h"
#include "model/memory/tape.h"

namespace penstock::model {

class MixtureTape {
 public:
  // Of `tokens` rows of each rank. Where several `ranks` share the experts out, rows travel to them, as many
  // as come. All outlive it.
  MixtureTape(Tape& tape, const KernelSetting& setting, const Shape& shape, Tokens tokens, int ranks);

  // Leaves the routing, the saved tensors and the output.
  void forward();

  // Leaves what `have` lacks, the pending operands and the gradient of the input.
  void backward(KeepSet have);

  // Formed by backward(): operands of the weight products besides Dispatched, Product and GateUp, which have
  // become their gradients. Last the products' scratch, while all of them are there.
  Bytes pending_gradients() const;
  void form_weight_gradients();

 private:
  Bytes rows(std::int64_t width) const { return tokens_ * shape_.experts_per_token * width * element_; }
  Bytes row_weights() const { return tokens_ * shape_.experts_per_token * accumulator_; }
  Bytes scores() const { return tokens_ * shape_.experts * accumulator_; }
  Bytes routing() const;
  // Rows that leave while others arrive, or that lie in the order of their arrival.
  Bytes travelling() const { return ranks_ > 1 ? rows(shape_.hidden) : 0; }
  bool shares() const { return shape_.shared_ffn > 0; }
  Bytes shared() const { return tokens_ * shape_.shared_ffn * element_; }
  Bytes hidden() const { return tokens_ * shape_.hidden * element_; }
  // Of the router's operands: its input or the input's gradient, and its weights.
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
