// SPDX-License-Identifier: Apache-2.0
#include "train/exchange/own_requests.h"

#include <utility>

#include "backend/memory.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/merge.h"

namespace penstock::train {
namespace {

// Copied only where the part is not dense: half a slice of several heads or sequences.
at::Tensor dense(const at::Tensor& part) {
  const backend::CategoryScope category(model::Category::Transfers);
  return part.contiguous();
}

}  // namespace

const schedule::Exchange& OwnRequests::exchange_of(std::uint32_t number) const {
  return server_.run_.program.exchanges[number];
}

int OwnRequests::halves() const {
  const schedule::Exchange& last = exchange_of(exchanges_.back());  // the oldest are first
  return last.first_half + last.halves;
}

void OwnRequests::post_keys(nn::EarlierSlices earlier, Pass pass) {
  server_.forget_sent(server_.asking_);  // a reply confirms receipt
  for (const std::uint32_t number : exchanges_) {
    const schedule::Exchange& exchange = exchange_of(number);
    server_.announce(exchange.partner, static_cast<int>(number), pass);
    for (const model::SlicePart& part : server_.parts_of(exchange)) {
      const auto [key, value] =
          nn::keys_and_values(*earlier[earlier.size() - 1 - static_cast<std::size_t>(part.slice)], part);
      server_.send(dense(key), exchange.partner, schedule::Channel::Exchange);
      server_.send(dense(value.transpose(1, 2)), exchange.partner, schedule::Channel::Exchange);
    }
  }
}

void OwnRequests::post_queries(const at::Tensor& query) {
  for (const std::uint32_t number : exchanges_) {
    const schedule::Exchange& exchange = exchange_of(number);
    server_.send(query, exchange.partner, schedule::Channel::Exchange);
    Reply& reply = replies_.emplace_back();
    receive(reply, exchange.partner, server_.room_of_queries(exchange, server_.type_));
    receive(reply, exchange.partner, server_.room(query.sizes().slice(0, 3), server_.accumulator()));
  }
}

void OwnRequests::merge(nn::kernels::AttentionPart& total) {
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    Reply& reply = replies_[i];
    wait(reply, exchanges_[i]);
    nn::kernels::merge(total, {reply.tensors[0], reply.tensors[1]});
    reply.tensors.clear();
  }
  replies_.clear();
}

void OwnRequests::post_gradients(const at::Tensor& query, const nn::kernels::AttentionPart& merged,
                                 const at::Tensor& grad_output) {
  const at::Tensor output = server_.as_sent(merged.output), gradient = server_.as_sent(grad_output);
  for (const std::uint32_t number : exchanges_) {
    const schedule::Exchange& exchange = exchange_of(number);
    for (const at::Tensor& tensor : {query, merged.log_sum_exp, output, gradient})
      server_.send(tensor, exchange.partner, schedule::Channel::Exchange);
    Reply& reply = replies_.emplace_back();
    receive(reply, exchange.partner, server_.room_of_queries(exchange, server_.accumulator()));
    for (const model::SlicePart& part : server_.parts_of(exchange)) {
      receive(reply, exchange.partner, server_.room_of_keys(part, server_.accumulator()));
      receive(reply, exchange.partner, server_.room_of_keys(part, server_.accumulator()));
    }
  }
}

void OwnRequests::add_gradients(at::Tensor& grad_query, nn::EarlierSlices earlier) {
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    Reply& reply = replies_[i];
    wait(reply, exchanges_[i]);
    nn::kernels::accumulate(grad_query, reply.tensors[0]);
    std::size_t next = 1;
    for (const model::SlicePart& part : server_.parts_of(exchange_of(exchanges_[i]))) {
      nn::LayerRecord& slice = *earlier[earlier.size() - 1 - static_cast<std::size_t>(part.slice)];
      nn::add_gradients(slice, part, {reply.tensors[next], reply.tensors[next + 1]});
      next += 2;
    }
    reply.tensors.clear();
  }
  replies_.clear();
}

void OwnRequests::receive(Reply& reply, int from, const at::Tensor& buffer) {
  reply.tensors.push_back(buffer);
  reply.requests.push_back(server_.polling_->receive(nn::bytes_of_tensor(buffer), from,
                                                     static_cast<int>(schedule::Channel::ExchangeReply)));
}

void OwnRequests::wait(Reply& reply, std::uint32_t number) {
  const backend::Moment start = backend::moment_now();
  comm::wait_all(reply.requests);
  server_.times_.waited(number, start, backend::moment_now());
}

}  // namespace penstock::train
