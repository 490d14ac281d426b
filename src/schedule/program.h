// SPDX-License-Identifier: Apache-2.0
// A program: the ops of each device, lowered from a schedule by the passes. The simulator and the trainer's
// interpreter run the same program and have no other input about what to run.
//
// Each device has one list of ops in issue order. Every op runs on a lane; a lane is first-in-first-out and
// asynchronous to the other lanes. An op starts when the previous op on its lane has started (transfers) or
// finished (compute, copies, collectives) and all ops in its `after` list are done. Messages of one (source,
// destination, channel) are matched in order; channels are independent of each other. Collectives with the
// same members are also matched in order (meeting.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "mesh/axis.h"
#include "schedule/action.h"
#include "schedule/exchange.h"
#include "schedule/schedule.h"

namespace penstock::schedule {

enum class Lane : std::uint8_t { Compute, Send, Receive, CopyOut, CopyIn, Collective };
inline constexpr int kLanes = 6;

enum class OpKind : std::uint8_t {
  Forward,          // F  compute
  Backward,         // B  compute
  BackwardInput,    // I  compute
  BackwardWeight,   // W  compute
  SendForward,      // SEND_F: sends the stage's output to the device of stage + 1
  ReceiveForward,   // RECV_F: receives the stage's input from the device of stage - 1
  SendBackward,     // SEND_B: sends the gradient of the stage's input to the device of stage - 1
  ReceiveBackward,  // RECV_B: receives the gradient of the stage's output from the device of stage + 1
  Offload,          // OFFLOAD: copies the key's record out of the device
  Reload,           // RELOAD: copies it back
  ReduceGradients,  // REDUCE_GRAD collective: sums the stage's gradients over the group, or with a peer's
  GatherWeights,    // GATHER_WEIGHTS collective: gathers the stage's weights from the group's shards
  ReleaseWeights,   // RELEASE_WEIGHTS collective: frees the gathered weights
  OptimizerStep,    // STEP compute: last on every device
  // Under vocabulary parallelism (passes/vocabulary.h); all but LOSS have stage 0's key.
  VocabularyLoss,            // LOSS compute: output layer and loss of a slice, all devices together
  SendEmbedding,             // SEND_EMBED: sends rows of this device's shard to the device of stage 0
  ReceiveEmbedding,          // RECV_EMBED
  SendEmbeddingGradient,     // SEND_EMBED_GRAD: from the device of stage 0 to the one that has the rows
  ReceiveEmbeddingGradient,  // RECV_EMBED_GRAD
  EmbeddingGradient,         // EMBED_GRAD compute: adds the received gradients
};

inline Lane lane_of(OpKind kind) {
  switch (kind) {
    case OpKind::SendForward:
    case OpKind::SendBackward:
    case OpKind::SendEmbedding:
    case OpKind::SendEmbeddingGradient:
      return Lane::Send;
    case OpKind::ReceiveForward:
    case OpKind::ReceiveBackward:
    case OpKind::ReceiveEmbedding:
    case OpKind::ReceiveEmbeddingGradient:
      return Lane::Receive;
    case OpKind::Offload:
      return Lane::CopyOut;
    case OpKind::Reload:
      return Lane::CopyIn;
    case OpKind::ReduceGradients:
    case OpKind::GatherWeights:
    case OpKind::ReleaseWeights:
      return Lane::Collective;
    default:
      return Lane::Compute;
  }
}

// Convert between an action's kind and the kind of the op that runs it; Idle if the op runs no action.
inline OpKind op_kind(Kind kind) {
  return kind == Kind::ReduceGradients ? OpKind::ReduceGradients : OpKind(static_cast<int>(kind) - 1);
}
inline Kind action_kind(OpKind kind) {
  if (kind == OpKind::ReduceGradients) return Kind::ReduceGradients;
  return kind <= OpKind::BackwardWeight ? Kind(static_cast<int>(kind) + 1) : Kind::Idle;
}
static_assert(static_cast<int>(OpKind::BackwardWeight) + 1 == static_cast<int>(Kind::BackwardWeight));

// True for ops that run an action of a schedule: F, B, I or W.
inline bool is_action(OpKind kind) { return kind <= OpKind::BackwardWeight; }
inline bool is_backward(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::BackwardInput; }
inline bool adds_weight_gradients(OpKind kind) {
  return kind == OpKind::Backward || kind == OpKind::BackwardWeight;
}
// True for lanes on which an op starts when the previous one has finished.
inline bool finishes_in_order(Lane lane) { return lane != Lane::Send && lane != Lane::Receive; }
inline bool is_send(OpKind kind) { return lane_of(kind) == Lane::Send; }
inline bool is_receive(OpKind kind) { return lane_of(kind) == Lane::Receive; }
// True for transfers of embedded tokens or their gradients between stage 0's device and another one.
inline bool is_embedding_transfer(OpKind kind) {
  return kind >= OpKind::SendEmbedding && kind <= OpKind::ReceiveEmbeddingGradient;
}
inline bool is_of_vocabulary(OpKind kind) {
  return kind >= OpKind::VocabularyLoss && kind <= OpKind::EmbeddingGradient;
}

// True for ops that a group runs together. LOSS computes, so it is on the compute lane.
inline bool is_collective(OpKind kind) {
  return lane_of(kind) == Lane::Collective || kind == OpKind::VocabularyLoss;
}

// Messages that may overtake each other travel on different channels.
enum class Channel : std::uint8_t {
  Forward,
  Backward,
  Gradients,
  Control,
  Embedding,
  Loss,
  Exchange,
  ExchangeReply,
  Replicas
};
inline constexpr int kChannels = static_cast<int>(Channel::Replicas) + 1;

// The channel of a send or receive.
inline Channel channel_of(OpKind kind) {
  const bool forward = kind == OpKind::SendForward || kind == OpKind::ReceiveForward;
  if (forward) return Channel::Forward;
  if (is_embedding_transfer(kind)) return Channel::Embedding;
  return Channel::Backward;
}

// `key` is the producer's for sends, the consumer's for receives, and all zeros for ops without one (STEP).
struct Op {
  [[no_unique_address]] Key key;
  OpKind kind = OpKind::Forward;
  mesh::Group group = mesh::Group::Pipeline;  // for collectives
  std::int32_t peer = -1;         // the other device of a transfer or of a two-device collective; else -1
  Bytes bytes = 0;                // moved by transfers, copies and collectives
  std::uint32_t after_begin = 0;  // index into DeviceProgram::after
  std::uint32_t after_count = 0;

  friend bool operator==(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 32);

struct DeviceProgram {
  std::vector<Op> ops;               // in issue order
  std::vector<std::uint32_t> after;  // indices into `ops`, always earlier than the op that waits

  std::span<const std::uint32_t> after_of(const Op& op) const {
    return {after.data() + op.after_begin, op.after_count};
  }

  // Appends an op that waits for the ops `waits`; returns its index.
  std::uint32_t append(Op op, std::span<const std::uint32_t> waits = {});

  friend bool operator==(const DeviceProgram&, const DeviceProgram&) = default;
};

struct Program {
  std::string name;
  int stages = 0;
  std::vector<int> slices;  // n, one per micro-batch
  std::vector<DeviceProgram> devices;
  std::vector<Exchange> exchanges = {};  // grouped by owner's op, oldest halves first

  int device_count() const { return static_cast<int>(devices.size()); }
  int micro_batches() const { return static_cast<int>(slices.size()); }

  friend bool operator==(const Program&, const Program&) = default;
};

// Whether any micro-batch has several slices, so that op names have a slice.
inline bool is_sliced(const Program& program) {
  return std::ranges::any_of(program.slices, [](int n) { return n != 1; });
}

}  // namespace penstock::schedule
