// SPDX-License-Identifier: Apache-2.0
// The owner's side of help: one op's requests to others, layer by layer.
#pragma once

#include <vector>

#include "train/help_desk.h"

namespace penstock::train {

class OwnRequests final : public nn::AttentionHelpers {
 public:
  // `help`: numbers of the op's help, in the program's order. The desk outlives this.
  OwnRequests(HelpDesk& desk, std::vector<std::uint32_t> help) : desk_(desk), help_(std::move(help)) {}

  int halves() const override;
  void post_keys(nn::EarlierSlices earlier, Pass pass) override;
  void post_queries(const at::Tensor& query) override;
  void merge(nn::kernels::AttentionPart& total) override;
  void post_gradients(const at::Tensor& query, const nn::kernels::AttentionPart& merged,
                      const at::Tensor& grad_output) override;
  void add_gradients(at::Tensor& grad_query, nn::EarlierSlices earlier) override;

 private:
  // A reply under way, in the order of its messages.
  struct Reply {
    std::vector<at::Tensor> tensors;
    std::vector<comm::Request> requests;
  };

  const schedule::Help& help_of(std::uint32_t number) const;
  void receive(Reply& reply, int from, const at::Tensor& buffer);
  void wait(Reply& reply, std::uint32_t number);

  HelpDesk& desk_;
  std::vector<std::uint32_t> help_;
  std::vector<Reply> replies_;  // of the layer under way, one for each help
};

}  // namespace penstock::train
