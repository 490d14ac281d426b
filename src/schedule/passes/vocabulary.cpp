// SPDX-License-Identifier: Apache-2.0
#include "schedule/passes/vocabulary.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"
#include "schedule/passes/rewriter.h"
#include "schedule/slot_grid.h"

namespace penstock::schedule {
namespace {

// The order within a slot.
enum class Phase : std::uint8_t { Messages, Forward, Loss, Backward, AfterBackward };

struct Insertion {
  int slot = 0;
  Phase phase = Phase::Messages;
  Op op;
  std::uint32_t source = 0;  // SEND_EMBED_GRAD: the B whose gradient it sends, in the compute-only list
};

Phase phase_of(OpKind kind) { return kind == OpKind::Forward ? Phase::Forward : Phase::Backward; }

Op of_kind(OpKind kind, const Op& key, int peer, Bytes bytes) {
  Op op = key;
  op.kind = kind;
  op.peer = peer;
  op.bytes = bytes;
  return op;
}

// Collects the ops to insert into one device's list.
class Insertions {
 public:
  Insertions(const Program& program, const SlotGrid& grid, const VocabularySharding& sharding, int device)
      : program_(program), grid_(grid), sharding_(sharding), device_(device) {}

  std::vector<Insertion> find() {
    add_visits();
    const DeviceProgram& first = program_.devices.front();
    for (std::uint32_t i = 0; i < first.ops.size(); ++i) {
      if (first.ops[i].key.stage != 0) continue;
      if (first.ops[i].kind == OpKind::Forward) add_parts(first.ops[i], grid_.slot_of[0][i]);
      if (is_backward(first.ops[i].kind)) add_gradients(i);
    }
    std::ranges::stable_sort(found_, {}, [](const Insertion& i) { return std::tuple(i.slot, i.phase); });
    return std::move(found_);
  }

 private:
  void add_visits() {
    const int last = program_.device_count() - 1;
    const std::vector<Op>& ops = program_.devices[last].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != OpKind::Forward || ops[i].key.stage + 1 != program_.stages) continue;
      const Bytes bytes = bytes_of(sharding_.visit_bytes, ops[i]);
      found_.push_back(
          {grid_.slot_of[last][i], Phase::Loss, of_kind(OpKind::VocabularyLoss, ops[i], -1, bytes)});
    }
  }

  void add_parts(const Op& forward, int slot) {
    add_transfer(forward, {slot - 1, Phase::Messages}, OpKind::ReceiveEmbedding, OpKind::SendEmbedding);
  }

  void add_gradients(std::uint32_t backward) {
    const Op& op = program_.devices[0].ops[backward];
    const int slot = grid_.slot_of[0][backward];
    add_transfer(op, {slot, device_ == 0 ? Phase::AfterBackward : Phase::Messages, {}, backward},
                 OpKind::SendEmbeddingGradient, OpKind::ReceiveEmbeddingGradient);
    if (device_ > 0)
      found_.push_back({slot + 1, Phase::AfterBackward, of_kind(OpKind::EmbeddingGradient, op, -1, 0)});
  }

  // Adds one op per other device on device 0, and one op with device 0 on the others.
  void add_transfer(const Op& key, Insertion where, OpKind on_first, OpKind on_others) {
    const Bytes bytes = bytes_of(sharding_.part_bytes, key);
    for (int other = 1; other < program_.device_count(); ++other) {
      if (device_ != 0 && device_ != other) continue;
      where.op = of_kind(device_ == 0 ? on_first : on_others, key, device_ == 0 ? other : 0, bytes);
      found_.push_back(where);
    }
  }

  const Program& program_;
  const SlotGrid& grid_;
  const VocabularySharding& sharding_;
  const int device_;
  std::vector<Insertion> found_;
};

// Puts the insertions between the ops of the list and adds the waits.
class Merge {
 public:
  Merge(const DeviceProgram& list, const std::vector<int>& slots, std::vector<Insertion> insertions)
      : list_(list), slots_(slots), insertions_(std::move(insertions)), rewriter_(list, insertions_.size()) {}

  DeviceProgram merged() {
    for (std::uint32_t i = 0; i < list_.ops.size(); ++i) {
      const Op& op = list_.ops[i];
      insert_until(std::tuple(slots_[i], phase_of(op.kind)));
      const bool embeds = op.kind == OpKind::Forward && op.key.stage == 0;
      last_compute_ = rewriter_.keep_next(embeds ? take_waits(op) : std::vector<std::uint32_t>{});
    }
    while (next_ < insertions_.size()) insert(insertions_[next_++]);
    return rewriter_.take();
  }

 private:
  static constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

  // Insertions at the same place go after the op, so that a LOSS comes after its slot's F.
  void insert_until(std::tuple<int, Phase> place) {
    while (next_ < insertions_.size() &&
           std::tuple(insertions_[next_].slot, insertions_[next_].phase) < place) {
      insert(insertions_[next_++]);
    }
  }

  void insert(const Insertion& insertion) {
    const Op& op = insertion.op;
    std::vector<std::uint32_t> waits;
    if (op.kind == OpKind::EmbeddingGradient) {
      waits = take_waits(op);
    } else if (op.kind == OpKind::SendEmbeddingGradient) {
      waits.push_back(rewriter_.moved_to(insertion.source));
    } else if (op.kind != OpKind::VocabularyLoss && last_compute_ != kNone) {
      waits.push_back(last_compute_);  // bounds the messages in flight
    }
    const std::uint32_t index = rewriter_.insert(op, waits);
    if (is_receive(op.kind)) received_.push_back({op, index});
    if (lane_of(op.kind) == Lane::Compute) last_compute_ = index;
  }

  // Returns and removes the receives of the op's (micro-batch, slice), which the op consumes.
  std::vector<std::uint32_t> take_waits(const Op& op) {
    std::vector<std::uint32_t> waits;
    std::erase_if(received_, [&](const std::pair<Op, std::uint32_t>& known) {
      const bool same = known.first.key.at_stage(0) == op.key.at_stage(0);
      if (same) waits.push_back(known.second);
      return same;
    });
    return waits;
  }

  const DeviceProgram& list_;
  const std::vector<int>& slots_;
  const std::vector<Insertion> insertions_;
  Rewriter rewriter_;
  std::size_t next_ = 0;
  std::uint32_t last_compute_ = kNone;                  // index in the result
  std::vector<std::pair<Op, std::uint32_t>> received_;  // receives without a waiting op so far
};

}  // namespace

Program add_vocabulary(const Program& program, const VocabularySharding& sharding) {
  if (!sharding.parallel) return program;
  const std::optional<SlotGrid> grid = find_slot_grid(program);
  if (!grid) {
    throw InputError(
        "vocabulary parallelism needs slots in which all devices run forwards together, then "
        "backwards together; " +
        program.name + " has none: use slimpipe");
  }
  Program result{program.name, program.stages, program.slices, {}};
  for (int device = 0; device < program.device_count(); ++device) {
    std::vector<Insertion> insertions = Insertions(program, *grid, sharding, device).find();
    result.devices.push_back(
        Merge(program.devices[device], grid->slot_of[device], std::move(insertions)).merged());
  }
  return result;
}

}  // namespace penstock::schedule
