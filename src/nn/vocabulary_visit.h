// SPDX-License-Identifier: Apache-2.0
// The output layer and the loss of one slice, computed by all ranks that split the rows of the output matrix:
// the t ranks of the last stage, or under vocabulary parallelism all t·p ranks of a pipeline. One visit
// computes the loss, the gradient of the last stage's output and the gradient of the output matrix, one tile
// of tokens at a time (docs/slimpipe.md, "The vocabulary over all devices").
//
// Each shard of a rank computes the logits of its columns for a tile and three numbers per token, which all
// ranks gather; during the gather a rank computes the next tile's logits, so at most two tiles of logits
// exist (category logits). The partial gradients of the hidden states are added in the accumulator type: the
// parts of a stage's shards as a tree, the stages in order.
//
// The rows of the last stage's tensor ranks travel in columns: a column is the ranks of all stages with the
// same r_t. Each has an equal block of its column's rows, which it hands on to the others, and whose
// gradients it adds for the last stage; within a stage, columns exchange what they have. So a rank's traffic
// between stages does not grow with their number, and shrinks with t (a scatter with an all-gather, and a
// reduce-scatter with a gather: Barnett et al. 1994, "Interprocessor collective communication library").
//
// Results do not depend on timing and differ from the unsharded output layer by rounding.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "comm/communicator.h"
#include "mesh/shard.h"
#include "model/shape.h"
#include "nn/groups/tensor_group.h"
#include "nn/kernels/cross_entropy.h"
#include "nn/parameters/parameter.h"

namespace penstock::nn {

// One rank's part of the output layer.
struct OutputShards {
  struct Shard {
    Parameter* matrix = nullptr;
    Parameter* norm = nullptr;  // the shard's copy; on the last stage only
  };
  std::vector<Shard> own;
  comm::Communicator* ranks = nullptr;  // rank = stage·t + r_t; the last t have the last stage
  const TensorGroup* group = nullptr;   // of this rank's stage
  double norm_epsilon = 1e-5;
  std::int64_t tile_tokens = model::usual_loss_tile(false);

  bool last() const { return own.front().norm != nullptr; }
  int stages() const { return ranks->size() / group->ranks(); }
};

struct VisitInput {
  Rows hidden;                 // the last stage's output, each shard's rows [n, h]; on its ranks only
  at::Tensor targets;          // [N] int64; -1: no target
  double loss_scale = 1.0;     // 1 / number of targets of the whole step
  bool with_gradients = true;  // else the loss only
};

struct VisitResult {
  kernels::LossSum loss_sum;  // over the targets, unscaled; on the first rank of the last stage, 0 elsewhere
  Rows grad_hidden;           // times loss_scale; on the last stage
};

class VocabularyVisit {
 public:
  static constexpr const char* kName = "the output layer of a slice";

  // Posts the first messages of the hidden states on `channel`. Arguments must outlive the visit.
  VocabularyVisit(const OutputShards& layer, int channel, const VisitInput& input);

  // Runs the visit. Adds the gradients of the output matrix and, on the last stage, of the final norm.
  // Failures of its messages are named kName.
  VisitResult carry_out();

 private:
  struct Tile {
    std::int64_t begin = 0, tokens = 0;
    std::vector<at::Tensor> logits;  // [T, rows], one per own shard
    at::Tensor statistics;           // [all shards, 3, T]
    std::vector<comm::Request> gathering;
  };
  // Gradients of a tile's rows of this column, in flight to this rank: parts of the ranks of its stage; then,
  // added over each stage, those of this rank's block.
  struct Reduction {
    Tile tile;
    std::vector<at::Tensor> of_ranks;   // [r_t][rows, h]
    std::vector<at::Tensor> of_stages;  // [stage][rows of the block, h]
    std::vector<comm::Request> receives;
  };
  struct Sent {
    at::Tensor buffer;
    comm::Request request;  // destroyed before its buffer
  };

  at::Tensor room_for(std::int64_t rows) const;  // [rows, h] in the compute type
  void normalise();
  void scatter_hidden();
  void hand_hidden_on();
  void visit_tiles();
  void send(const at::Tensor& buffer, int to);  // nothing, if empty
  void receive(const at::Tensor& buffer, int from, std::vector<comm::Request>& requests);
  template <class Visit>
  void for_other_columns(Visit&& visit) const;
  template <class Visit>
  void for_other_stages(Visit&& visit) const;

  int self() const { return layer_.ranks->rank(); }
  int column() const { return group_.rank(); }
  int stage() const { return self() / group_.ranks(); }
  int last_stage() const { return layer_.stages() - 1; }
  int rank_at(int stage, int column) const { return stage * group_.ranks() + column; }
  // The tile's rows of a column, counted from the slice's first row, and the block of them of one stage.
  mesh::Shard rows_of(const Tile& tile, int column) const;
  mesh::Shard block_of(const Tile& tile, int stage) const;  // of this rank's column
  mesh::Shard matrix_rows(int own_index) const { return layer_.own[own_index].matrix->shard; }

  std::int64_t tiles() const;
  Tile tile_at(std::int64_t number) const;
  Tile begin_tile(std::int64_t number);
  void finish_tile(Tile tile);
  at::Tensor partial_gradient(Tile& tile, const at::Tensor& targets, const at::Tensor& scale);
  void form_gradients(Tile& tile, const at::Tensor& targets, const at::Tensor& scale);
  void share_parts(const Tile& tile, const at::Tensor& part);
  void add_in_stage();
  void finish_reduction();
  at::Tensor room_for_parts(std::int64_t rows, const at::Tensor& like) const;
  at::Tensor own_gradients(const mesh::Shard& rows) const;  // their place in grad_normed_
  Rows norm_backward();

  const OutputShards& layer_;
  const TensorGroup& group_;
  const int channel_;
  const VisitInput& input_;
  const std::int64_t tokens_;
  at::Tensor normed_;                                       // [N, h]
  std::vector<at::Tensor> scales_;                          // of the norm, one per own shard
  std::vector<std::vector<comm::Request>> scattered_;       // [tile]: the block to hand on
  std::vector<std::vector<comm::Request>> hidden_arrives_;  // [tile]: rows of other columns
  at::Tensor grad_normed_;                                  // [own rows, h] in the compute type
  std::optional<Reduction> reduction_;                      // of the latest tile
  std::vector<comm::Request> sums_arrive_;
  std::vector<Sent> sent_;
  kernels::LossSum loss_sum_;
};

}  // namespace penstock::nn
