// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "train/step/interpreter.h"

namespace penstock::train {

using schedule::Op;
using schedule::OpKind;

void Interpreter::send(std::uint32_t index, at::Tensor payload) {
  const Op& op = list_.ops[index];
  PENSTOCK_CHECK(payload.defined(), "a send follows the op that made its payload");
  Flight flight{.op = index, .buffer = payload.contiguous(), .request = {}};
  backend::recount(flight.buffer, model::Category::Transfers);
  flight.request = parts_.pipeline->send(nn::bytes_of_tensor(flight.buffer), op.peer,
                                         static_cast<int>(schedule::channel_of(op.kind)));
  sending_.push_back(std::move(flight));
}

void Interpreter::receive(std::uint32_t index) {
  const Op& op = list_.ops[index];
  const bool part = schedule::is_embedding_transfer(op.kind);
  Flight flight{.op = index, .buffer = part ? empty_part(op) : empty_slice(op), .request = {}};
  backend::recount(flight.buffer, model::Category::Transfers);
  flight.request = parts_.pipeline->receive(nn::bytes_of_tensor(flight.buffer), op.peer,
                                            static_cast<int>(schedule::channel_of(op.kind)));
  receiving_.push_back(std::move(flight));
}

void Interpreter::finish_receive(std::uint32_t index) {
  const auto flight = std::ranges::find(receiving_, index, &Flight::op);
  if (flight == receiving_.end()) return;
  flight->request.wait();
  deliver(*flight);
  receiving_.erase(flight);
}

void Interpreter::finish_send(std::uint32_t index) {
  const auto flight = std::ranges::find(sending_, index, &Flight::op);
  if (flight == sending_.end()) return;
  flight->request.wait();
  times_.end(index);
  sending_.erase(flight);
}

void Interpreter::deliver(Flight& flight) {
  const Op& op = list_.ops[flight.op];
  const std::size_t here = slot(op.key);
  if (schedule::is_embedding_transfer(op.kind)) {
    embedding_parts_[{op.peer, here}] = flight.buffer;
  } else {
    (op.kind == OpKind::ReceiveForward ? inputs_ : output_gradients_)[here] = flight.buffer;
  }
  times_.end(flight.op);
}

// Lets the transport make progress, frees sent buffers, and records arrival times.
void Interpreter::poll() {
  if (parts_.offloader) parts_.offloader->throw_failure();
  std::erase_if(receiving_, [&](Flight& flight) {
    if (!flight.request.test()) return false;
    deliver(flight);
    return true;
  });
  free_what_is_sent();
}

void Interpreter::free_what_is_sent() {
  std::erase_if(sending_, [&](Flight& flight) {
    if (!flight.request.test()) return false;
    times_.end(flight.op);
    return true;
  });
}

void Interpreter::wait_for_sends() {
  for (Flight& flight : sending_) {
    flight.request.wait();
    times_.end(flight.op);
  }
  sending_.clear();
}

at::Tensor Interpreter::empty_slice(const Op& op) const {
  return at::empty({own_rows(op), run_.shape().hidden}, backend::on_device(type_));
}

}  // namespace penstock::train
