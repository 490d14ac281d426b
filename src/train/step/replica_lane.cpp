// SPDX-License-Identifier: Apache-2.0
#include "train/step/replica_lane.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "nn/allocator.h"
#include "nn/groups/tensor_bytes.h"
#include "nn/parameter_maker.h"
#include "run/replicas.h"

namespace penstock::train {
namespace {

using schedule::Op;
using schedule::OpKind;

// Of all units, no share is longer.
std::int64_t longest_share(const Units& units) {
  std::int64_t longest = 1;
  for (const auto& [number, unit] : units) {
    for (const nn::Parameter* parameter : unit.parameters) {
      const std::int64_t elements = parameter->elements();
      longest = std::max(longest, mesh::flat_share(elements, parameter->sharing.shards, 0).count);
    }
  }
  return longest;
}

at::Tensor make_room(const run::Run& run, const Units& units) {
  const nn::CategoryScope scope(nn::Category::Transfers);
  const at::ScalarType type = units.begin()->second.parameters.front()->master.scalar_type();
  return at::empty({run::replica_room(run, longest_share(units))}, at::dtype(type));
}

comm::Type type_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? comm::Type::F64 : comm::Type::F32;
}

std::string name_of(const run::Run& run, const Op& op) {
  const std::string unit =
      op.key.stage == run.stages() ? "the sharded vocabulary" : "stage " + std::to_string(op.key.stage);
  return (op.kind == OpKind::ReduceGradients ? "REDUCE_GRAD of " : "GATHER_WEIGHTS of ") + unit;
}

}  // namespace

ReplicaLane::ReplicaLane(const run::Run& run, const comm::Groups& groups, Units& units,
                         GradientBuffers& gradients)
    : run_(run),
      units_(units),
      gradients_(gradients),
      sharing_(*groups.sharing),
      copying_(*groups.copying),
      room_(make_room(run, units)),
      lane_(type_of(room_), nn::bytes_of_tensor(room_), {run::kReplicaPiece, run::kReplicaWindow},
            static_cast<int>(schedule::Channel::Replicas), run.options.train.timeout) {}

void ReplicaLane::begin(Seconds began) {
  began_ = began;
  facts_ = {};
}

void ReplicaLane::start(std::uint32_t index, const Op& op) {
  Flight flight{.op = op, .index = index};
  op.kind == OpKind::ReduceGradients ? reduce(flight) : gather(flight);
  flights_.push_back(flight);
}

// Scattered over the ranks of a shard group, then all-reduced between those with the same share.
void ReplicaLane::reduce(Flight& flight) {
  const std::string name = name_of(run_, flight.op);
  std::vector<comm::SharedBuffer> shares, copies;
  for (const nn::Parameter* parameter : units_.at(flight.op.key.stage).parameters) {
    shares.push_back(whole(*parameter, parameter->gradient));
    copies.push_back(own_copies(*parameter, parameter->gradient));
  }
  std::vector<comm::ShareLane::Ticket> tickets;
  if (sharing_->size() > 1) tickets.push_back(lane_.sum(*sharing_, std::move(shares), name));
  if (copying_->size() > 1) {
    tickets.push_back(lane_.sum(*copying_, copies, name));
    tickets.push_back(lane_.gather(*copying_, std::move(copies), room_.element_size(), name));
  }
  flight.first = tickets.front();
  flight.last = tickets.back();
}

void ReplicaLane::gather(Flight& flight) {
  Unit& unit = units_.at(flight.op.key.stage);
  if (!unit.passing && gathered_[flight.op.key.stage]) return;
  std::vector<comm::SharedBuffer> shares;
  std::size_t element = 0;
  const nn::CategoryScope scope(nn::Category::Weights);
  for (nn::Parameter* parameter : unit.parameters) {
    const auto same = [&](const nn::Parameter* other) { return other->master.is_same(parameter->master); };
    const nn::Parameter* owner = *std::ranges::find_if(unit.parameters, same);
    const bool alias = owner != parameter;  // the output side of tied embeddings
    if (alias && unit.passing) parameter->weight = owner->weight;
    if (alias) continue;
    if (unit.passing) {  // others have kept their own parts up to date
      parameter->weight = at::empty(parameter->held_sizes(), at::dtype(nn::compute_type(run_.precision)));
      nn::weight_from_master(*parameter);
    }
    element = parameter->weight.element_size();
    shares.push_back(whole(*parameter, parameter->weight));
  }
  gathered_[flight.op.key.stage] = true;
  flight.first = flight.last = lane_.gather(*sharing_, std::move(shares), element, name_of(run_, flight.op));
}

void ReplicaLane::release(const Op& op) {
  for (nn::Parameter* parameter : units_.at(op.key.stage).parameters) parameter->weight.reset();
}

comm::SharedBuffer ReplicaLane::whole(const nn::Parameter& parameter, const at::Tensor& tensor) const {
  comm::SharedBuffer buffer{.elements = nn::bytes_of_tensor(tensor).data(), .shares = {}};
  for (int rank = 0; rank < sharing_->size(); ++rank) {
    const mesh::Shard share = mesh::flat_share(parameter.elements(), sharing_->size(), rank);
    buffer.shares.push_back({share.begin, share.count});
  }
  return buffer;
}

// The own share, cut once more.
comm::SharedBuffer ReplicaLane::own_copies(const nn::Parameter& parameter, const at::Tensor& tensor) const {
  const mesh::Shard own = parameter.share();
  comm::SharedBuffer buffer{
      .elements = nn::bytes_of_tensor(tensor).data() + own.begin * tensor.element_size(), .shares = {}};
  for (int rank = 0; rank < copying_->size(); ++rank) {
    const mesh::Shard share = mesh::flat_share(own.count, copying_->size(), rank);
    buffer.shares.push_back({share.begin, share.count});
  }
  return buffer;
}

void ReplicaLane::finish(std::uint32_t index, const std::function<bool()>& meanwhile, const Report& report) {
  if (flights_.empty() || flights_.front().index > index) return;
  const Seconds before = steady_seconds();
  while (!flights_.empty() && flights_.front().index <= index) {
    const Flight flight = flights_.front();
    if (flight.last >= flight.first) lane_.wait(flight.last, meanwhile);
    flights_.pop_front();
    end(flight, report);
  }
  facts_.waiting += steady_seconds() - before;
}

void ReplicaLane::end(const Flight& flight, const Report& report) {
  schedule::Event event{.start = 0, .end = 0, .op = flight.index};
  if (flight.last >= flight.first) {
    event.start = lane_.times(flight.first).began - began_;
    event.end = lane_.times(flight.last).ended - began_;
    facts_.busy += event.end - event.start;
    report(event);
  }
  const int unit = flight.op.key.stage;
  if (flight.op.kind == OpKind::ReduceGradients && units_.at(unit).passing) gradients_.drop(unit);
}

}  // namespace penstock::train
