// SPDX-License-Identifier: Apache-2.0
// A run's measured times as costs: op by op for the same program, averaged for others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/exchange.h"
#include "schedule/timeline.h"
#include "sim/costs/costs.h"
#include "sim/costs/table.h"

namespace penstock::sim {

// Costs from a measured step:
// - Compute and copy ops take their measured time. A collective of several devices counts from the arrival of
//   its last member.
// - A message takes the minimum time, from the start of the send to the arrival, of all messages of its size
//   on its link: later arrivals were noticed late by a receiver that was computing. A message of another
//   size, such as those of exchange, takes the time of the nearest size.
// - With exchange, an action's time is the sum of what its own device and its partners computed of it. Its
//   attention is the partners' time, scaled up from their halves to all halves that it read, and at most the
//   whole op. A partner's share is its time.
// - Record bytes come from `bytes`, which must outlive this.
class MeasuredCosts final : public Costs {
 public:
  // Throws InputError if the timeline does not match the program: another number of devices or ops, or an op
  // that has no end or ends before it starts.
  MeasuredCosts(const schedule::Program& program, const schedule::Timeline& timeline,
                const MemoryCosts& bytes);

  // Replaces the times of all ops, [device][op], by processor seconds, for runs in which ranks shared cores
  // and the wall clock has no meaning. Copies keep their times: other threads or devices carry them out.
  void take_processor_seconds(const schedule::Program& program,
                              const std::vector<std::vector<Seconds>>& seconds);

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

  // The time that a partner took for one exchange.
  struct Served {
    Seconds seconds = 0;
    Seconds processor = 0;
    int halves = 0;
  };

  // The part of an op that other devices computed.
  struct Moved {
    int device = 0;
    std::uint32_t op = 0;
    std::map<int, Served> served;  // key: the first half of the exchange
  };

  Seconds seconds_of(const Served& served) const { return processor_ ? served.processor : served.seconds; }
  Seconds all_of(const Moved& moved) const;
  Seconds attention_of(const schedule::PassKey& pass, const Moved& moved) const;

  std::vector<std::vector<Seconds>> took_;  // [device][op], including the part that others computed
  std::map<schedule::PassKey, Moved> moved_;
  int layers_ = 1;                            // of a stage, from the number of requests
  bool processor_ = false;                    // took_ is in processor seconds
  std::vector<std::vector<Flight>> flights_;  // [device] outgoing; few sizes and peers each
  const MemoryCosts& bytes_;
};

// Returns mean seconds per (kind, stage, slice), and each link's minimum message time as its latency, to
// simulate other schedules, micro-batches or placements of the same stages. The means are over the run's
// micro-batches with the wanted number of slices; for one slice, over all micro-batches (without_slices).
// Kinds that the program lacks stay missing. Throws InputError with `origin`, the run, if it does not match.
CostTable average(const schedule::Program& program, const schedule::Timeline& timeline,
                  const TableExtent& wanted, const std::string& origin);

// Throws InputError with `origin`, the run, for a schedule whose micro-batches have different slice counts: a
// table has the times for one count.
void require_even_slices(const schedule::Schedule& wanted, const std::string& origin);

}  // namespace penstock::sim
