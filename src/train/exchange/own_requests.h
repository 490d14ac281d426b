// SPDX-License-Identifier: Apache-2.0
// The owner's side of context exchange: one op's requests to other devices, layer by layer.
#pragma once

#include <vector>

#include "train/exchange/server.h"

namespace penstock::train {

class OwnRequests final : public nn::AttentionPartners {
 public:
  // `exchange`: numbers of the op's exchanges, in the program's order. The server must outlive this.
  OwnRequests(ExchangeServer& server, std::vector<std::uint32_t> exchange)
      : server_(server), exchanges_(std::move(exchange)) {}

  int halves() const override;
  void post_keys(nn::EarlierSlices earlier, Pass pass) override;
  void post_queries(const at::Tensor& query) override;
  void merge(nn::kernels::AttentionPart& total) override;
  void post_gradients(const at::Tensor& query, const nn::kernels::AttentionPart& merged,
                      const at::Tensor& grad_output) override;
  void add_gradients(at::Tensor& grad_query, nn::EarlierSlices earlier) override;

 private:
  // A reply in flight, in the order of its messages.
  struct Reply {
    std::vector<at::Tensor> tensors;
    std::vector<comm::Request> requests;
  };

  const schedule::Exchange& exchange_of(std::uint32_t number) const;
  void receive(Reply& reply, int from, const at::Tensor& buffer);
  void wait(Reply& reply, std::uint32_t number);

  ExchangeServer& server_;
  std::vector<std::uint32_t> exchanges_;
  std::vector<Reply> replies_;  // of the current layer, one per exchange
};

}  // namespace penstock::train
