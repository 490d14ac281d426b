// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "schedule/exchange/time.h"
#include "schedule/meeting.h"
#include "schedule/program_index.h"
#include "schedule/program_text.h"
#include "schedule/program_words.h"
#include "sim/costs/messages.h"

namespace penstock::sim {
namespace {

using schedule::Event;
using schedule::Lane;
using schedule::Op;
using schedule::OpKind;
using schedule::Program;
using schedule::Timeline;

void check_device(const Program& program, const Timeline& timeline, int device) {
  const std::vector<Op>& ops = program.devices[device].ops;
  const std::vector<Event>& events = timeline.devices[device];
  const std::string who = "timeline of device " + std::to_string(device);
  if (events.size() != ops.size()) {
    throw InputError(who + ": " + std::to_string(events.size()) + " events; expected one for each of the " +
                     std::to_string(ops.size()) + " ops of " + program.name);
  }
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const bool whole = std::isfinite(event.start) && std::isfinite(event.end) && 0 <= event.start &&
                       event.start <= event.end;
    if (whole) continue;
    throw InputError(who + ": op " + std::to_string(i) + " (" + to_token(ops[i], is_sliced(program)) +
                     ") runs from " + std::to_string(event.start) + " to " + std::to_string(event.end) +
                     " s; expected a start of at least 0 and a later end");
  }
}

void check_match(const Program& program, const Timeline& timeline) {
  if (timeline.devices.size() != program.devices.size()) {
    throw InputError("timeline: " + std::to_string(timeline.devices.size()) + " devices; expected the " +
                     std::to_string(program.devices.size()) + " of " + program.name);
  }
  for (int d = 0; d < program.device_count(); ++d) check_device(program, timeline, d);
}

// Returns the timeline with collectives that begin when all their members have arrived: the simulation adds
// the wait of the earlier members itself.
Timeline begun_together(const Program& program, Timeline timeline) {
  std::map<std::pair<schedule::Members, std::size_t>, std::vector<Event*>> meetings;
  for (int d = 0; d < program.device_count(); ++d) {
    std::map<schedule::Members, std::size_t> counts;
    for (std::size_t i = 0; i < timeline.devices[d].size(); ++i) {
      const Op& op = program.devices[d].ops[i];
      if (!is_collective(op.kind)) continue;
      const schedule::Members members = schedule::meeting_of(d, op);
      if (!members.alone()) meetings[{members, counts[members]++}].push_back(&timeline.devices[d][i]);
    }
  }
  for (const auto& [key, events] : meetings) {
    Seconds last = 0;
    for (const Event* event : events) last = std::max(last, event->start);
    for (Event* event : events) event->start = std::min(last, event->end);
  }
  return timeline;
}

std::string text_of(const TableExtent& extent) {
  return counted(extent.devices, "device") + ", " + counted(extent.stages, "stage") + " and " +
         counted(extent.slices, "slice");
}

}  // namespace

MeasuredCosts::MeasuredCosts(const Program& program, const Timeline& timeline, const MemoryCosts& bytes)
    : bytes_(bytes) {
  check_match(program, timeline);
  const Timeline together = begun_together(program, timeline);
  for (const std::vector<Event>& events : together.devices) {
    std::vector<Seconds>& took = took_.emplace_back();
    for (const Event& event : events) took.push_back(event.end - event.start);
  }
  if (!timeline.exchanges.empty()) measure_exchange(program, together);
  measure_links(program, timeline);
}

// Sets each op's time to its own time, without serving others and waiting for them, plus what they computed.
void MeasuredCosts::measure_exchange(const Program& program, const Timeline& timeline) {
  const schedule::ProgramIndex index(program);
  std::vector<int> times(program.exchanges.size());
  for (int d = 0; d < program.device_count(); ++d) {
    took_[d] = schedule::own_seconds(program.devices[d], timeline.devices[d], timeline.exchanges[d]);
    for (const schedule::ExchangeSpan& span : timeline.exchanges[d]) {
      if (span.waiting) continue;
      const schedule::Exchange& exchange = program.exchanges[span.exchange];
      Moved& moved = moved_[pass_of(exchange.of)];
      const schedule::Place place =
          exchange.backward() ? index.backward(exchange.of.key) : index.forward(exchange.of.key);
      moved.device = place.device;
      moved.op = place.op;
      Served& served = moved.served[exchange.first_half];
      served.halves = exchange.halves;
      served.seconds += span.end - span.start;
      served.processor += span.processor;
      if (++times[span.exchange] > layers_ && !exchange.backward()) layers_ = times[span.exchange];
    }
  }
  for (const auto& [pass, moved] : moved_) took_[moved.device][moved.op] += all_of(moved);
}

Seconds MeasuredCosts::all_of(const Moved& moved) const {
  Seconds sum = 0;
  for (const auto& [first_half, served] : moved.served) sum += seconds_of(served);
  return sum;
}

// Scales by the halves read: the op's own keys count as one, halves before the first moved one are not read.
Seconds MeasuredCosts::attention_of(const schedule::PassKey& pass, const Moved& moved) const {
  int halves = 0;
  for (const auto& [first_half, served] : moved.served) halves += served.halves;
  const int read = 2 * pass.key.slice + 1 - moved.served.begin()->first;
  const Seconds away = all_of(moved);
  return std::max(away, std::min(took_[moved.device][moved.op], away * read / halves));
}

AttentionShare MeasuredCosts::attention(int, std::uint32_t, const Op& op) const {
  AttentionShare share{.layers = layers_};
  if (op.kind != OpKind::Forward && !is_backward(op.kind)) return share;
  const auto found = moved_.find({is_backward(op.kind), op.key});
  if (found != moved_.end()) share.seconds = attention_of(found->first, found->second);
  return share;
}

double MeasuredCosts::share_of_attention(const schedule::Exchange& exchange) const {
  const auto found = moved_.find(pass_of(exchange.of));
  if (found == moved_.end()) return Costs::share_of_attention(exchange);
  const Seconds whole = attention_of(found->first, found->second);
  const auto served = found->second.served.find(exchange.first_half);
  if (served == found->second.served.end() || whole <= 0) return Costs::share_of_attention(exchange);
  return seconds_of(served->second) / whole;
}

void MeasuredCosts::take_processor_seconds(const Program& program,
                                           const std::vector<std::vector<Seconds>>& seconds) {
  PENSTOCK_CHECK(seconds.size() == took_.size(), "every device has times");
  for (std::size_t d = 0; d < seconds.size(); ++d) {
    PENSTOCK_CHECK(seconds[d].size() == took_[d].size(), "every op has a time");
    for (std::size_t i = 0; i < seconds[d].size(); ++i) {
      const schedule::Lane lane = lane_of(program.devices[d].ops[i].kind);
      if (lane != schedule::Lane::CopyOut && lane != schedule::Lane::CopyIn) took_[d][i] = seconds[d][i];
    }
  }
  processor_ = true;
  for (const auto& [pass, moved] : moved_) took_[moved.device][moved.op] += all_of(moved);
}

void MeasuredCosts::measure_links(const Program& program, const Timeline& timeline) {
  flights_.resize(program.devices.size());
  const std::vector<std::vector<Seconds>> departed = departures(program, timeline);
  for (int d = 0; d < program.device_count(); ++d) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < program.devices[d].ops.size(); ++i) {
      const Op& op = program.devices[d].ops[i];
      if (!is_receive(op.kind)) continue;
      const Seconds took = std::max(0.0, timeline.devices[d][i].end - departed[d][next++]);
      std::vector<Flight>& flights = flights_[op.peer];
      const auto known = std::ranges::find_if(
          flights, [&](const Flight& flight) { return flight.to == d && flight.bytes == op.bytes; });
      if (known == flights.end()) {
        flights.push_back({op.peer, d, op.bytes, took});
      } else {
        known->least = std::min(known->least, took);
      }
    }
  }
}

Seconds MeasuredCosts::seconds(int device, std::uint32_t index, const Op&) const {
  return took_[device][index];
}

Transfer MeasuredCosts::transfer(int device, std::uint32_t, const Op& send) const {
  Seconds nearest = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (const Flight& known : flights_[device]) {
    const double away = std::abs(static_cast<double>(known.bytes - send.bytes));
    if (known.to != send.peer || away >= distance) continue;
    nearest = known.least;
    distance = away;
  }
  return {0, nearest};
}

RecordBytes MeasuredCosts::record(const schedule::Key& key) const { return bytes_.record(key); }

ActionBytes MeasuredCosts::action(int device, const schedule::Op& op) const {
  return bytes_.action(device, op);
}

namespace {

// True for copies, LOSS, messages and actions. All other ops belong to a stage or a device.
bool is_of_micro_batch(OpKind kind) {
  return lane_of(kind) != Lane::Collective && kind != OpKind::OptimizerStep;
}

// Averages over the micro-batches with this number of slices.
CostTable average_of(const Program& program, const MeasuredCosts& measured, int slices) {
  const TableExtent extent{program.stages, slices, program.device_count()};
  CostTable table(extent);
  struct Sum {
    Seconds seconds = 0;
    int count = 0;
  };
  std::map<std::pair<int, int>, Seconds> quickest;  // of each link, over all sizes
  std::vector<Sum> sums(schedule::kOpWords.size() * static_cast<std::size_t>(extent.stages) * extent.slices);
  for (int d = 0; d < program.device_count(); ++d) {
    for (std::uint32_t i = 0; i < program.devices[d].ops.size(); ++i) {
      const Op& op = program.devices[d].ops[i];
      if (is_of_micro_batch(op.kind) && program.slices[op.key.micro_batch] != slices) continue;
      if (is_send(op.kind)) {
        const Seconds latency = measured.transfer(d, i, op).latency;
        Seconds& least = quickest.try_emplace({d, op.peer}, latency).first->second;
        least = std::min(least, latency);
        table.set_link(d, op.peer, {.latency = least});
      }
      if (is_send(op.kind) || is_receive(op.kind)) continue;
      if (op.key.stage >= extent.stages) continue;  // the vocabulary unit, not a stage (schedule/units.h)
      const std::size_t row = static_cast<std::size_t>(op.kind) * extent.stages + op.key.stage;
      Sum& sum = sums[row * extent.slices + op.key.slice];
      sum.seconds += measured.seconds(d, i, op);
      table.set_seconds(op.kind, op.key.stage, op.key.slice, sum.seconds / ++sum.count);
    }
  }
  return table;
}

// Averages over whole micro-batches with any number of slices.
CostTable average_of_whole(const Program& program, const MeasuredCosts& measured) {
  std::map<int, int> counts;  // [number of slices] number of micro-batches
  for (const int slices : program.slices) ++counts[slices];
  std::vector<CountedTable> tables;
  for (const auto& [slices, count] : counts) {
    CostTable table = average_of(program, measured, slices);
    tables.push_back({slices == 1 ? std::move(table) : without_slices(table), count});
  }
  return tables.size() == 1 ? std::move(tables.front().table) : mean_of(tables);
}

}  // namespace

CostTable average(const Program& program, const Timeline& timeline, const TableExtent& wanted,
                  const std::string& origin) {
  const CostTable no_bytes(TableExtent{});
  const MeasuredCosts measured(program, timeline, no_bytes);
  const TableExtent found = extent_of(program);
  const bool matches =
      found.stages == wanted.stages && found.devices == wanted.devices &&
      (wanted.slices == 1 || std::ranges::find(program.slices, wanted.slices) != program.slices.end());
  if (!matches)
    throw InputError(origin + ": the run has " + text_of(found) + ", the schedule " + text_of(wanted) +
                     "; give a run with as many");
  CostTable table =
      wanted.slices == 1 ? average_of_whole(program, measured) : average_of(program, measured, wanted.slices);
  table.leave_out_kinds_not_in(program);
  return table;
}

void require_even_slices(const schedule::Schedule& wanted, const std::string& origin) {
  if (wanted.slices.empty()) return;
  const auto [least, most] = std::ranges::minmax(wanted.slices);
  if (least == most) return;
  throw InputError(origin +
                   ": a run's mean times are for micro-batches of equally many slices; the schedule's have " +
                   std::to_string(least) + " to " + std::to_string(most) +
                   ": use one number for all, or a table of costs");
}

}  // namespace penstock::sim
