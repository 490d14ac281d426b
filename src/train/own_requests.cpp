// SPDX-License-Identifier: Apache-2.0
#include "train/own_requests.h"

#include <array>
#include <utility>

#include "nn/allocator.h"
#include "nn/kernels/accumulate.h"
#include "nn/kernels/merge.h"
#include "train/tensor_bytes.h"

namespace penstock::train {
namespace {

// Copied only where the part is not dense: half a slice of several heads or sequences.
at::Tensor dense(const at::Tensor& part) {
  const nn::CategoryScope category(nn::Category::Transfers);
  return part.contiguous();
}

}  // namespace

const schedule::Help& OwnRequests::help_of(std::uint32_t number) const {
  return desk_.setting_.program.help[number];
}

int OwnRequests::halves() const {
  const schedule::Help& last = help_of(help_.back());  // the oldest come first
  return last.first_half + last.halves;
}

void OwnRequests::post_keys(nn::EarlierSlices earlier, Pass pass) {
  desk_.forget_sent();  // whoever has replied has received
  for (const std::uint32_t number : help_) {
    const schedule::Help& help = help_of(number);
    desk_.announce(help.helper, static_cast<int>(number), pass);
    for (const model::SlicePart& part : desk_.parts_of(help)) {
      const auto [key, value] =
          nn::keys_and_values(*earlier[earlier.size() - 1 - static_cast<std::size_t>(part.slice)], part);
      desk_.send(dense(key), help.helper, schedule::Channel::Help);
      desk_.send(dense(value.transpose(1, 2)), help.helper, schedule::Channel::Help);
    }
  }
}

void OwnRequests::post_queries(const at::Tensor& query) {
  for (const std::uint32_t number : help_) {
    const schedule::Help& help = help_of(number);
    desk_.send(query, help.helper, schedule::Channel::Help);
    Reply& reply = replies_.emplace_back();
    receive(reply, help.helper, desk_.room_of_queries(help, desk_.setting_.type));
    receive(reply, help.helper, desk_.room(query.sizes().slice(0, 3), desk_.accumulator()));
  }
}

void OwnRequests::merge(nn::kernels::AttentionPart& total) {
  for (std::size_t i = 0; i < help_.size(); ++i) {
    Reply& reply = replies_[i];
    wait(reply, help_[i]);
    nn::kernels::merge(total, {reply.tensors[0], reply.tensors[1]});
    reply.tensors.clear();
  }
  replies_.clear();
}

void OwnRequests::post_gradients(const at::Tensor& query, const nn::kernels::AttentionPart& merged,
                                 const at::Tensor& grad_output) {
  const at::Tensor output = desk_.as_sent(merged.output), gradient = desk_.as_sent(grad_output);
  for (const std::uint32_t number : help_) {
    const schedule::Help& help = help_of(number);
    for (const at::Tensor& tensor : {query, merged.log_sum_exp, output, gradient})
      desk_.send(tensor, help.helper, schedule::Channel::Help);
    Reply& reply = replies_.emplace_back();
    receive(reply, help.helper, desk_.room_of_queries(help, desk_.accumulator()));
    for (const model::SlicePart& part : desk_.parts_of(help)) {
      const HelpDesk::Setting& setting = desk_.setting_;
      const std::array<std::int64_t, 4> sizes{setting.sequences, setting.kv_heads, part.length,
                                              setting.head_dim};
      receive(reply, help.helper, desk_.room(sizes, desk_.accumulator()));
      receive(reply, help.helper, desk_.room(sizes, desk_.accumulator()));
    }
  }
}

void OwnRequests::add_gradients(at::Tensor& grad_query, nn::EarlierSlices earlier) {
  for (std::size_t i = 0; i < help_.size(); ++i) {
    Reply& reply = replies_[i];
    wait(reply, help_[i]);
    nn::kernels::accumulate(grad_query, reply.tensors[0]);
    std::size_t next = 1;
    for (const model::SlicePart& part : desk_.parts_of(help_of(help_[i]))) {
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
  reply.requests.push_back(desk_.attentive_->receive(bytes_of_tensor(buffer), from,
                                                     static_cast<int>(schedule::Channel::HelpReply)));
}

void OwnRequests::wait(Reply& reply, std::uint32_t number) {
  desk_.begin_wait(number);
  for (comm::Request& request : reply.requests) request.wait();
  desk_.end_wait();
}

}  // namespace penstock::train
