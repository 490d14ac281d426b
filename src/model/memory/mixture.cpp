// SPDX-License-Identifier: Apache-2.0
#include "model/memory/mixture.h"

#include "base/whole.h"

namespace penstock::model {

MixtureTape::MixtureTape(Tape& tape, const KernelSetting& setting, const Shape& shape, Tokens tokens,
                         int ranks)
    : tape_(tape),
      setting_(setting),
      shape_(shape),
      tokens_(tokens),
      ranks_(ranks),
      element_(element_size(setting.precision)),
      accumulator_(accumulator_size(setting.precision)) {}

Bytes MixtureTape::routing() const {
  return tokens_ * statistics_bytes(shape_, KeepSet{}.with(SavedTensor::GateUp), accumulator_);
}

Tokens MixtureTape::rows_of_expert() const {
  return ceil_div(tokens_ * shape_.experts_per_token * ranks_, shape_.experts);
}

void MixtureTape::take_product(std::int64_t in, std::int64_t out) {
  tape_.take(rows(out));
  tape_.touch(product_scratch(setting_, rows_of_expert(), in, out));
}

void MixtureTape::complete(KeepSet have) {
  if (!have.has(SavedTensor::GateUp)) {
    const Bytes widened = (setting_.narrow() ? widened_tokens() : 0) + widened_router();
    tape_.touch(widened + scores());
    tape_.take(routing());
  }
  if (!have.has(SavedTensor::Dispatched)) {
    tape_.take(rows(shape_.hidden));
    tape_.touch(travelling());
  }
  if (have.has(SavedTensor::GateUp)) return;
  if (shares()) complete_shared();
  take_product(shape_.hidden, shape_.ffn);
  take_product(shape_.hidden, shape_.ffn);
}

void MixtureTape::forward() {
  complete({});
  tape_.take(rows(shape_.ffn));
  take_product(shape_.ffn, shape_.hidden);
  tape_.touch(travelling());
  tape_.take(hidden());
  tape_.give(rows(shape_.hidden));
  if (shares()) add_shared();
}

// routing() includes the shared expert's weights, although they are computed later.
void MixtureTape::complete_shared() {
  const Bytes widened = setting_.narrow() ? widened_tokens() + shape_.hidden * accumulator_ : 0;
  if (shape_.shared_gate) tape_.touch(widened);
  for (int product = 0; product < 2; ++product) {
    tape_.take(shared());
    tape_.touch(product_scratch(setting_, tokens_, shape_.hidden, shape_.shared_ffn));
  }
}

void MixtureTape::add_shared() {
  tape_.take(shared() + hidden());
  tape_.touch(product_scratch(setting_, tokens_, shape_.shared_ffn, shape_.hidden));
  tape_.give(hidden());
}

void MixtureTape::add_shared_backward(KeepSet have) {
  tape_.take(shared());
  tape_.touch(product_scratch(setting_, tokens_, shape_.hidden, shape_.shared_ffn));
  tape_.take(tokens_ * accumulator_);
  if (have.has(SavedTensor::Product)) tape_.give(shared());
  tape_.touch(product_scratch(setting_, tokens_, shape_.shared_ffn, shape_.hidden));
  if (shape_.shared_gate) tape_.take(tokens_ * accumulator_);
  tape_.give(tokens_ * accumulator_);
}

void MixtureTape::backward(KeepSet have) {
  complete(have);
  tape_.take(rows(shape_.hidden));  // gradients of the experts' outputs
  tape_.touch(travelling());
  take_product(shape_.hidden, shape_.ffn);
  tape_.take(row_weights());
  if (have.has(SavedTensor::Product)) tape_.give(rows(shape_.ffn));  // else the product overwrites it
  take_product(shape_.ffn, shape_.hidden);
  tape_.take(travelling());              // the router computes while rows travel
  tape_.take(row_weights() + scores());  // gradients
  tape_.take(widened_tokens());
  tape_.touch(widened_router());
  tape_.give(travelling());
  tape_.take(hidden());
  tape_.give(widened_tokens() + rows(shape_.hidden) + 2 * row_weights());
  if (shares()) add_shared_backward(have);
}

Bytes MixtureTape::pending_gradients() const {
  return rows(shape_.hidden) + scores() + (shape_.shared_gate ? tokens_ * accumulator_ : 0);
}

void MixtureTape::form_weight_gradients() {
  if (setting_.narrow()) tape_.touch(widened_tokens());
  for (const auto& [in, out] : {std::pair(shape_.ffn, shape_.hidden), {shape_.hidden, shape_.ffn}})
    tape_.touch(weight_gradient_scratch(setting_, rows_of_expert(), in, out));
  if (!shares()) return;
  for (const auto& [in, out] :
       {std::pair(shape_.shared_ffn, shape_.hidden), {shape_.hidden, shape_.shared_ffn}})
    tape_.touch(weight_gradient_scratch(setting_, tokens_, in, out));
}

}  // namespace penstock::model
