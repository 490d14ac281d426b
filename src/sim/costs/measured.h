// SPDX-License-Identifier: Apache-2.0
// A run's own times as costs: of the same program op by op, or averaged for others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/exchange.h"
#include "schedule/timeline.h"
#include "sim/costs/costs.h"
#include "sim/costs/table.h"

namespace penstock::sim {

// Every compute and copy op takes what it took in the run, a collective of several devices what it took once
// all had come. A message takes the least time that any message as large took on its link in the run, from
// the start of its send to its arrival: later arrivals were noticed late, by a receiver that was computing.
// One of another size, as exchange's are, takes what the nearest size took. Record bytes are `bytes`'
// answers, which must outlive this. With exchange, an action takes what its own device and its partners
// computed of it; its attention is what the partners took, by their share of the halves that it read, but no
// less than they took and no more than the whole op. A partner's share of it is what that took.
class MeasuredCosts final : public Costs {
 public:
  // Throws InputError when the timeline is not of the program: another number of devices or ops, or an op
  // that has no end or ends before it starts.
  MeasuredCosts(const schedule::Program& program, const schedule::Timeline& timeline,
                const MemoryCosts& bytes);

  // Takes compute ops' times from here instead, [device][op]: processor seconds, where ranks shared cores and
  // the clock on the wall tells nothing.
  void take_seconds(std::vector<std::vector<Seconds>> seconds);

  Seconds seconds(int device, std::uint32_t index, const schedule::Op& op) const override;
  Transfer transfer(int device, std::uint32_t index, const schedule::Op& send) const override;
  RecordBytes record(const schedule::Key& key) const override;
  AttentionShare attention(int device, std::uint32_t index, const schedule::Op& op) const override;
  double share_of_attention(const schedule::Exchange& exchange) const override;
  bool holds_bytes() const override { return bytes_.holds_bytes(); }
  ActionBytes action(int device, const schedule::Op& op) const override;
  StageBytes stage(int number) const override { return bytes_.stage(number); }

 private:
  void measure_exchange(const schedule::Program& program, const schedule::Timeline& timeline);
  void measure_links(const schedule::Program& program, const schedule::Timeline& timeline);

  struct Flight {
    int from, to;
    Bytes bytes;
    Seconds least;
  };

  // What a partner took for one exchange.
  struct Served {
    Seconds seconds = 0;
    Seconds processor = 0;
    int halves = 0;
  };

  // What others computed of an op.
  struct Moved {
    int device = 0;
    std::uint32_t op = 0;
    std::map<int, Served> served;  // by the first half of each exchange
  };

  Seconds seconds_of(const Served& served) const { return processor_ ? served.processor : served.seconds; }
  Seconds all_of(const Moved& moved) const;
  Seconds attention_of(const schedule::PassKey& pass, const Moved& moved) const;

  std::vector<std::vector<Seconds>> took_;  // [device][op]; with what others computed of it
  std::map<schedule::PassKey, Moved> moved_;
  int layers_ = 1;                            // of a stage, as requests tell
  bool processor_ = false;                    // took_ is in processor seconds
  std::vector<std::vector<Flight>> flights_;  // [device]: outgoing; few sizes and peers each
  const MemoryCosts& bytes_;
};

// Mean seconds per (kind, stage, slice), and each link's least message time as its latency: for simulating
// other schedules, micro-batches or placements of the same stages. They are of the run's micro-batches with
// as many slices as is wanted; for one slice those of all micro-batches, whatever theirs (without_slices).
// Kinds that the program lacks stay missing. `origin` names the run where others do not match (InputError).
CostTable average(const schedule::Program& program, const schedule::Timeline& timeline,
                  const TableExtent& wanted, const std::string& origin);

// Throws InputError, naming the run, for a schedule whose micro-batches differ in slices: a table has the
// times of one number.
void require_even_slices(const schedule::Schedule& wanted, const std::string& origin);

}  // namespace penstock::sim
