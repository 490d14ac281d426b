// SPDX-License-Identifier: Apache-2.0
// The output layer and the loss of one slice, computed by all devices of a pipeline together: one visit
// computes the loss, the gradient of the last stage's output and the gradient of the output matrix, tile by
// tile of tokens (algorithms: "The output layer and the loss").
//
// Each device computes the logits of its columns of a tile and three numbers per token, which all devices
// gather; during the gather it computes the next tile's logits, so at most two tiles of logits exist
// (category logits). The partial gradients of the hidden states are added on the last device in the
// accumulator type, in the order of the ranks. Results do not depend on timing and differ from the unsharded
// output layer by rounding.
#pragma once

#include "base/units.h"
#include "comm/communicator.h"
#include "nn/vocabulary_shard.h"

namespace penstock::nn {

struct VisitInput {
  at::Tensor hidden;           // [N, h], the last stage's output; on the last device only
  at::Tensor targets;          // [N] int64; -1: none
  double loss_scale = 1.0;     // 1 / number of targets of the whole step
  bool with_gradients = true;  // else the loss only
};

struct VisitResult {
  double loss_sum = 0;     // over the targets, unscaled; on the last device, 0 elsewhere
  at::Tensor grad_hidden;  // [N, h], times loss_scale; on the last device
};

class VocabularyVisit {
 public:
  // Posts the messages of the hidden states on `channel` and returns when all devices have done so.
  // Collective. Arguments must outlive the visit.
  VocabularyVisit(VocabularyShard& shard, comm::Communicator& pipeline, int channel, const VisitInput& input);

  // Computes the visit. Adds the gradients of the output matrix and, on the last device, of the final norm.
  VisitResult carry_out();

 private:
  struct Tile {
    std::int64_t begin = 0, tokens = 0;
    at::Tensor logits;      // [T, rows]
    at::Tensor statistics;  // [p, 3, T]
    std::vector<comm::Request> gathering;
  };
  // Parts of a tile's gradient in flight to the last device.
  struct Reduction {
    std::int64_t begin = 0;
    std::vector<at::Tensor> parts;  // [rank][T, h]
    std::vector<comm::Request> receives;
  };
  struct Sent {
    comm::Request request;
    at::Tensor buffer;
  };

  void send(const at::Tensor& buffer, int to);
  comm::Request receive(at::Tensor& buffer, int from);
  template <class Visit>
  void for_others(Visit&& visit);

  std::int64_t tiles() const;
  Tile begin_tile(std::int64_t number);
  void finish_tile(Tile tile);
  void form_gradients(Tile& tile, const at::Tensor& targets, const at::Tensor& scale);
  void finish_reduction();

  VocabularyShard& shard_;
  comm::Communicator& pipeline_;
  const int channel_;
  const VisitInput& input_;
  const std::int64_t tile_tokens_;
  const int last_;                             // rank of the last device
  at::Tensor normed_, scale_;                  // [N, h], and on the last device the norm's [N]
  std::vector<comm::Request> hidden_arrives_;  // [tile], elsewhere
  at::Tensor grad_normed_;                     // [N, h] in the compute type, on the last device
  Reduction reduction_;
  std::vector<Sent> sent_;
  double loss_sum_ = 0;
};

}  // namespace penstock::nn
