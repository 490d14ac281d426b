// SPDX-License-Identifier: Apache-2.0
// The gradients of one rank as sums over groups of the batch (docs/mesh.md, "Equal bits"): each group's
// micro-batches add up in a separate buffer; complete groups are added in an aligned binary tree. So the bits
// do not depend on the number of replicas. Gradients of units with sharded weights (units.h) exist in full
// from the first contribution until drop().
//
// A parameter has at most run::gradient_buffers buffers; those of units without sharded weights stay
// allocated.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "run/run.h"
#include "schedule/program.h"
#include "train/step/units.h"

namespace penstock::train {

class GradientBuffers {
 public:
  // `list`: the device's in run.program. Run and units must outlive the buffers.
  GradientBuffers(const run::Run& run, const schedule::DeviceProgram& list, Units& units);

  // Replaces the list by the next step's.
  void expect(const schedule::DeviceProgram& list);

  // Call around ops that add to gradients. enter() puts the buffers of the op's group into its parameters;
  // leave() adds up the groups that the op completes. After the last op a parameter's gradient is the sum
  // over all groups.
  void enter(const schedule::Op& op);
  void leave(const schedule::Op& op);

  // Shrinks the gradients of a unit with sharded weights to this rank's own parts, of the shares' size.
  void drop(int unit);

  // Call before the next step.
  void clear();

 private:
  // Parameters whose gradients are formed by the same ops.
  enum class Phase : std::uint8_t { Output, Input, Weight };
  struct Class {
    int unit = 0;
    Phase phase = Phase::Weight;
    friend auto operator<=>(const Class&, const Class&) = default;
  };
  // The sum of the 2^level groups from group index * 2^level on.
  struct Node {
    int level = 0;
    std::int64_t index = 0;
    friend auto operator<=>(const Node&, const Node&) = default;
  };
  struct Buffers {
    nn::Parameter* parameter = nullptr;
    std::map<std::int64_t, at::Tensor> open;  // by group, except the current one
    std::map<Node, at::Tensor> complete;
    std::vector<at::Tensor> spare;
    at::Tensor own;  // of a parameter with sharded weights: its own part, once reduced
  };
  struct Members {
    std::vector<Buffers> buffers;
    std::vector<std::int64_t> expected;  // [group] ops that contribute
    std::vector<std::int64_t> left;      // still to come in this step
    std::int64_t current = -1;           // group; -1: none
  };

  static Phase phase_of(const nn::Parameter& parameter);
  std::vector<Class> classes_of(const schedule::Op& op) const;
  std::int64_t group_of(const schedule::Op& op) const;
  void make_room(int unit);
  void enter(Members& members, std::int64_t group);
  void complete(Members& members, std::int64_t group);
  at::Tensor zeros(Buffers& buffers) const;

  const run::Run& run_;
  Units& units_;
  const bool has_vocabulary_;
  std::int64_t groups_;
  std::int64_t micro_batches_of_group_;
  std::map<Class, Members> classes_;
};

}  // namespace penstock::train
