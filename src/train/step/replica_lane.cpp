// SPDX-License-Identifier: Apache-2.0
#include "train/step/replica_lane.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "backend/device.h"
#include "backend/memory.h"
#include "base/error.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/parameters/parameter_maker.h"
#include "run/replicas.h"

namespace penstock::train {
namespace {

using schedule::Op;
using schedule::OpKind;

// The longest share of all units.
std::int64_t longest_share(const Units& units) {
  std::int64_t longest = 1;
  for (const auto& [number, unit] : units) {
    for (const nn::Parameter* parameter : unit.parameters) {
      longest =
          std::max(longest, mesh::longest_flat_share(parameter->elements(), parameter->sharding.shards));
    }
  }
  return longest;
}

at::Tensor make_room(const run::Run& run, const Units& units) {
  const backend::CategoryScope scope(model::Category::Transfers);
  const at::ScalarType type = units.begin()->second.parameters.front()->master.scalar_type();
  return at::empty({run::replica_room(run, longest_share(units))}, backend::on_device(type));
}

comm::Type type_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? comm::Type::F64 : comm::Type::F32;
}

std::string name_of(const run::Run& run, const Op& op) {
  const std::string unit =
      op.key.stage == run.stages() ? "the sharded vocabulary" : "stage " + std::to_string(op.key.stage);
  return (op.kind == OpKind::ReduceGradients ? "REDUCE_GRAD of " : "GATHER_WEIGHTS of ") + unit;
}

// The parameter that owns this one's weight: another one for the output side of tied embeddings.
const nn::Parameter& owner_of(const nn::Parameter& parameter, const Unit& unit) {
  const auto same = [&](const nn::Parameter* other) { return other->master.is_same(parameter.master); };
  return **std::ranges::find_if(unit.parameters, same);
}

comm::SharedBuffer whole(const nn::Parameter& parameter, const at::Tensor& tensor, int ranks) {
  comm::SharedBuffer buffer{.elements = nn::bytes_of_tensor(tensor).data(), .shares = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const mesh::Shard share = mesh::flat_share(parameter.elements(), ranks, rank);
    buffer.shares.push_back({share.begin, share.count});
  }
  return buffer;
}

// This rank's share, cut again into one share per rank.
comm::SharedBuffer own_copies(const nn::Parameter& parameter, const at::Tensor& tensor, int ranks) {
  const mesh::Shard own = parameter.share();
  comm::SharedBuffer buffer{
      .elements = nn::bytes_of_tensor(tensor).data() + own.begin * tensor.element_size(), .shares = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const mesh::Shard share = mesh::flat_share(own.count, ranks, rank);
    buffer.shares.push_back({share.begin, share.count});
  }
  return buffer;
}

}  // namespace

ReplicaLane::ReplicaLane(const run::Run& run, const comm::Groups& groups, Units& units,
                         GradientBuffers& gradients)
    : run_(run),
      units_(units),
      gradients_(gradients),
      families_{Family{false, groups.replicas ? &*groups.replicas : nullptr},
                Family{true, groups.expert_replicas ? &*groups.expert_replicas : nullptr}},
      room_(make_room(run, units)),
      lane_(type_of(room_), nn::bytes_of_tensor(room_), {run::kReplicaPiece, run::kReplicaWindow},
            static_cast<int>(schedule::Channel::Replicas), run.options.train.timeout,
            {.began = [this](comm::ShareLane::Ticket one) { spans_[one].start = backend::moment_now(); },
             .ended = [this](comm::ShareLane::Ticket one) { spans_[one].end = backend::moment_now(); }}) {}

void ReplicaLane::begin() { facts_ = {}; }

void ReplicaLane::start(std::uint32_t index, const Op& op) {
  Flight flight{.op = op, .index = index};
  op.kind == OpKind::ReduceGradients ? reduce(flight) : gather(flight);
  flights_.push_back(flight);
}

void ReplicaLane::reduce(Flight& flight) {
  for (const Family& family : families_) reduce(flight, family);
}

// Reduce-scatters over the ranks of a shard group, then all-reduces between those with the same share.
void ReplicaLane::reduce(Flight& flight, const Family& family) {
  if (!family.groups) return;
  const auto& [sharding, copying] = *family.groups;
  const std::string name = name_of(run_, flight.op);
  std::vector<comm::SharedBuffer> shares, copies;
  for (const nn::Parameter* parameter : units_.at(flight.op.key.stage).parameters) {
    if (!family.has(*parameter)) continue;
    shares.push_back(whole(*parameter, parameter->gradient, sharding->size()));
    copies.push_back(own_copies(*parameter, parameter->gradient, copying->size()));
  }
  if (shares.empty()) return;
  if (sharding->size() > 1) flight.add(lane_.sum(*sharding, std::move(shares), name));
  if (copying->size() == 1) return;
  flight.add(lane_.sum(*copying, copies, name));
  flight.add(lane_.gather(*copying, std::move(copies), room_.element_size(), name));
}

void ReplicaLane::gather(Flight& flight) {
  Unit& unit = units_.at(flight.op.key.stage);
  if (!unit.sharded_weights && gathered_[flight.op.key.stage]) return;
  if (unit.sharded_weights) restore(unit);
  for (const Family& family : families_) gather(flight, family);
  gathered_[flight.op.key.stage] = true;
}

// Allocates the weights and fills in the own parts; other ranks have kept theirs up to date.
void ReplicaLane::restore(Unit& unit) const {
  const backend::CategoryScope scope(model::Category::Weights);
  for (nn::Parameter* parameter : unit.parameters) {
    const nn::Parameter& owner = owner_of(*parameter, unit);
    if (&owner != parameter) {
      parameter->weight = owner.weight;
      continue;
    }
    parameter->weight =
        at::empty(parameter->held_sizes(), backend::on_device(nn::compute_type(run_.precision)));
    nn::weight_from_master(*parameter);
  }
}

void ReplicaLane::gather(Flight& flight, const Family& family) {
  if (!family.groups || family.groups->sharding->size() == 1) return;
  const comm::Replicas sharding = family.groups->sharding;
  const Unit& unit = units_.at(flight.op.key.stage);
  std::vector<comm::SharedBuffer> shares;
  std::size_t element = 0;
  for (const nn::Parameter* parameter : unit.parameters) {
    if (!family.has(*parameter) || &owner_of(*parameter, unit) != parameter) continue;
    element = parameter->weight.element_size();
    shares.push_back(whole(*parameter, parameter->weight, sharding->size()));
  }
  if (!shares.empty())
    flight.add(lane_.gather(*sharding, std::move(shares), element, name_of(run_, flight.op)));
}

bool ReplicaLane::Family::has(const nn::Parameter& parameter) const {
  return experts == (mesh::cut_of(parameter.name) == mesh::Cut::Expert);
}

void ReplicaLane::release(const Op& op) {
  for (nn::Parameter* parameter : units_.at(op.key.stage).parameters) parameter->weight.reset();
}

void ReplicaLane::finish(std::uint32_t index, const std::function<bool()>& meanwhile) {
  if (flights_.empty() || flights_.front().index > index) return;
  Span& wait = waits_.emplace_back(Span{.start = backend::moment_now(), .end = {}});
  while (!flights_.empty() && flights_.front().index <= index) {
    const Flight flight = flights_.front();
    if (flight.moves()) lane_.wait(flight.last, meanwhile);
    flights_.pop_front();
    finished_.push_back(flight);
    const int unit = flight.op.key.stage;
    if (flight.op.kind == OpKind::ReduceGradients && units_.at(unit).sharded_weights) gradients_.drop(unit);
  }
  wait.end = backend::moment_now();
}

void ReplicaLane::report(const backend::DeviceClock& clock, const Note& note) {
  for (const Flight& flight : finished_) {
    if (!flight.moves()) continue;
    const schedule::Event event{.start = clock.seconds(spans_.at(flight.first).start),
                                .end = clock.seconds(spans_.at(flight.last).end)};
    facts_.busy += event.end - event.start;
    note(flight.index, event);
  }
  for (const Span& wait : waits_) facts_.waiting += clock.seconds(wait.end) - clock.seconds(wait.start);
  finished_.clear();
  waits_.clear();
  spans_.clear();
}

}  // namespace penstock::train
