// SPDX-License-Identifier: Apache-2.0
#include "report/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/interruption.h"
#include "base/text.h"
#include "report/check_timeline.h"
#include "report/drawing.h"
#include "schedule/deliveries.h"
#include "schedule/program_text.h"
#include "schedule/program_words.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Op;

constexpr int kThreadsPerLane = 10'000;  // thread ids reserved for a lane's overlapping transfers
constexpr std::array<std::string_view, schedule::kLanes> kLaneNames{"compute",  "send",    "receive",
                                                                    "copy-out", "copy-in", "collective"};
constexpr int kKernelThread = static_cast<int>(kLaneNames.size()) * kThreadsPerLane;

using Nanoseconds = std::int64_t;  // whole, so that adjacent events stay adjacent

struct Span {
  Nanoseconds start = 0, end = 0;
  int thread = 0;
};

Nanoseconds nanoseconds(Seconds seconds) { return std::llround(seconds * 1e9); }

std::string microseconds(Nanoseconds time) {
  return time < 0 ? "-" + microseconds(-time)
                  : std::to_string(time / 1000) + "." + std::to_string(1000 + time % 1000).substr(1);
}

class TraceWriter {
 public:
  void add(const TraceProcess& process);
  std::string finish() { return text_ + "\n],\"displayTimeUnit\":\"ms\"}\n"; }

 private:
  void event(std::string_view body);
  void place_spans();
  void place_threads(int device);
  void add_device(int device);
  void add_op(int device, std::uint32_t op);
  void add_flow(const schedule::Delivery& message);
  void add_memory(int device);
  void add_kernels(int device);
  void add_exchange(int device);
  void name_lane(int device, int thread);
  void name_thread(int device, int thread, const std::string& name);
  std::string place(int device, int thread) const;
  std::string arguments(int device, std::uint32_t op) const;

  std::string text_ = "{\"traceEvents\":[";
  bool first_ = true;
  int first_process_ = 0;  // of the timeline being added
  int processes_ = 0;
  std::int64_t flows_ = 0;
  bool sliced_ = false;
  const TraceProcess* process_ = nullptr;
  std::vector<schedule::Delivery> messages_;
  std::vector<std::vector<Span>> spans_;  // [device][op]
};

void TraceWriter::event(std::string_view body) {
  text_ += first_ ? "\n{" : ",\n{";
  text_ += body;
  text_ += '}';
  first_ = false;
}

void TraceWriter::add(const TraceProcess& process) {
  check_timeline(process.program, process.timeline);
  process_ = &process;
  sliced_ = is_sliced(process.program);
  first_process_ = processes_;
  processes_ += process.program.device_count();
  messages_ = schedule::deliveries_of(process.program);
  place_spans();
  for (int device = 0; device < process.program.device_count(); ++device) {
    place_threads(device);
    add_device(device);
  }
  for (const schedule::Delivery& message : messages_) {
    allow_interruption();
    add_flow(message);
  }
}

void TraceWriter::place_spans() {
  spans_.assign(process_->program.devices.size(), {});
  for (std::size_t d = 0; d < spans_.size(); ++d) {
    spans_[d].resize(process_->program.devices[d].ops.size());
    const std::vector<Event>& events = process_->timeline.devices[d];
    for (std::size_t op = 0; op < events.size(); ++op) {
      const Nanoseconds start = nanoseconds(events[op].start);
      spans_[d][op] = {start, std::max(start, nanoseconds(events[op].end)), 0};
    }
  }
  for (const schedule::Delivery& message : messages_) {
    Span& receive = spans_[message.destination][message.receive];
    Span& send = spans_[message.source][message.send];
    receive.start = std::clamp(send.start, receive.start, receive.end);
    // The ends of a flow bind to the events that are running at their times, so these need a length.
    for (Span* end : {&send, &receive}) end->end = std::max(end->end, end->start + 1);
  }
}

// Viewers need sequential events in a thread: uses the first free thread of the lane, or a new one.
void TraceWriter::place_threads(int device) {
  const auto& ops = process_->program.devices[device].ops;
  std::vector<std::uint32_t> order(ops.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t op) { return spans_[device][op].start; });
  std::array<std::vector<Nanoseconds>, kLaneNames.size()> free_at;
  for (const std::uint32_t op : order) {
    Span& span = spans_[device][op];
    const auto lane = static_cast<std::size_t>(lane_of(ops[op].kind));
    auto free = std::ranges::find_if(free_at[lane], [&](Nanoseconds end) { return end <= span.start; });
    if (free == free_at[lane].end()) free = free_at[lane].insert(free, 0);
    *free = span.end;
    span.thread = static_cast<int>(lane) * kThreadsPerLane + static_cast<int>(free - free_at[lane].begin());
  }
  for (std::size_t lane = 0; lane < kLaneNames.size(); ++lane) {
    for (std::size_t i = 0; i < free_at[lane].size(); ++i) {
      name_lane(device, static_cast<int>(lane * kThreadsPerLane + i));
    }
  }
}

void TraceWriter::add_device(int device) {
  const std::string row =
      process_->rows.empty() ? "device " + std::to_string(device) : process_->rows[device];
  const std::string name = std::string(process_->prefix) + row;
  const std::string process = place(device, 0);
  event("\"ph\":\"M\",\"name\":\"process_name\"," + process + "\"args\":{\"name\":" + json_quote(name) + "}");
  event("\"ph\":\"M\",\"name\":\"process_sort_index\"," + process +
        "\"args\":{\"sort_index\":" + std::to_string(first_process_ + device) + "}");
  for (std::uint32_t op = 0; op < spans_[device].size(); ++op) add_op(device, op);
  if (!process_->memory.empty()) add_memory(device);
  if (!process_->kernels.empty()) add_kernels(device);
  if (!process_->timeline.exchanges.empty()) add_exchange(device);
}

void TraceWriter::name_lane(int device, int thread) {
  const int copy = thread % kThreadsPerLane;
  name_thread(device, thread,
              std::string(kLaneNames[thread / kThreadsPerLane]) +
                  (copy > 0 ? " " + std::to_string(copy + 1) : std::string()));
}

void TraceWriter::name_thread(int device, int thread, const std::string& name) {
  event("\"ph\":\"M\",\"name\":\"thread_name\"," + place(device, thread) +
        "\"args\":{\"name\":" + json_quote(name) + "}");
  event("\"ph\":\"M\",\"name\":\"thread_sort_index\"," + place(device, thread) +
        "\"args\":{\"sort_index\":" + std::to_string(thread) + "}");
}

void TraceWriter::add_op(int device, std::uint32_t index) {
  allow_interruption();
  const Op& op = process_->program.devices[device].ops[index];
  const Span& span = spans_[device][index];
  const std::string_view category = kLaneNames[static_cast<std::size_t>(lane_of(op.kind))];
  event("\"ph\":\"X\",\"name\":" + json_quote(to_token(op, sliced_)) + ",\"cat\":" + json_quote(category) +
        "," + place(device, span.thread) + "\"ts\":" + microseconds(span.start) +
        ",\"dur\":" + microseconds(span.end - span.start) + ",\"args\":" + arguments(device, index));
}

std::string TraceWriter::place(int device, int thread) const {
  return "\"pid\":" + std::to_string(first_process_ + device) + ",\"tid\":" + std::to_string(thread) + ",";
}

std::string TraceWriter::arguments(int device, std::uint32_t index) const {
  const auto& list = process_->program.devices[device];
  const Op& op = list.ops[index];
  const bool of_unit = schedule::word_of(op.kind).key == schedule::KeyForm::Stage;
  std::string text = "{\"stage\":" + std::to_string(op.key.stage) +
                     ",\"micro_batch\":" + std::to_string(op.key.micro_batch) +
                     ",\"slice\":" + std::to_string(op.key.slice);
  const auto j = static_cast<std::size_t>(op.key.micro_batch), i = static_cast<std::size_t>(op.key.slice);
  const bool has_slice = is_action(op.kind) && j < process_->slices.size() && i < process_->slices[j].size();
  if (has_slice) text += ",\"holds\":" + json_quote(process_->slices[j][i]);
  if (of_unit) text += ",\"of\":" + json_quote(unit_text(process_->program, op));
  if (op.bytes > 0) text += ",\"bytes\":" + std::to_string(op.bytes);
  if (op.peer >= 0) text += ",\"peer\":" + std::to_string(op.peer);
  if (is_receive(op.kind)) {
    text += ",\"posted_us\":" + microseconds(nanoseconds(process_->timeline.devices[device][index].start));
  }
  std::vector<std::string> waits;
  for (const std::uint32_t wait : list.after_of(op)) waits.push_back(to_token(list.ops[wait], sliced_));
  if (!waits.empty()) text += ",\"after\":" + json_quote(join(waits, " "));
  return text + "}";
}

// The ends of a flow bind to the events that are running at their times.
void TraceWriter::add_flow(const schedule::Delivery& message) {
  const Span& send = spans_[message.source][message.send];
  const Span& receive = spans_[message.destination][message.receive];
  const std::string head =
      "\"cat\":\"transfer\",\"name\":\"transfer\",\"id\":" + std::to_string(flows_++) + ",";
  event("\"ph\":\"s\"," + head + place(message.source, send.thread) + "\"ts\":" + microseconds(send.start));
  event("\"ph\":\"f\",\"bp\":\"e\"," + head + place(message.destination, receive.thread) +
        "\"ts\":" + microseconds(receive.start));
}

void TraceWriter::add_kernels(int device) {
  name_thread(device, kKernelThread, "kernels");
  for (const KernelSpan& span : process_->kernels[device]) {
    const Nanoseconds start = nanoseconds(span.start);
    event("\"ph\":\"X\",\"name\":" + json_quote(span.kernel) + ",\"cat\":\"kernel\"," +
          place(device, kKernelThread) + "\"ts\":" + microseconds(start) +
          ",\"dur\":" + microseconds(std::max(start, nanoseconds(span.end)) - start) +
          ",\"args\":{\"block\":" + json_quote(span.block) + "}");
  }
}

// Attention that the device computed for others, and its waits for attention that others computed.
void TraceWriter::add_exchange(int device) {
  name_thread(device, kKernelThread + 1, "exchange");
  for (const schedule::ExchangeSpan& span : process_->timeline.exchanges[device]) {
    const schedule::Exchange& exchange = process_->program.exchanges[span.exchange];
    const int partner = span.waiting ? exchange.partner : exchange.owner;
    const std::string name = std::string(span.waiting ? "waits for device " : "attends for device ") +
                             std::to_string(partner) + ": " + to_token(exchange.of, sliced_);
    const Nanoseconds start = nanoseconds(span.start);
    event("\"ph\":\"X\",\"name\":" + json_quote(name) + ",\"cat\":\"exchange\"," +
          place(device, kKernelThread + 1) + "\"ts\":" + microseconds(start) +
          ",\"dur\":" + microseconds(std::max(start, nanoseconds(span.end)) - start) + ",\"args\":{}");
  }
}

void TraceWriter::add_memory(int device) {
  const MemorySeries& memory = process_->memory[device];
  for (std::size_t i = 0; i < memory.times.size(); ++i) {
    std::string values;
    for (std::size_t c = 0; c < memory.categories.size(); ++c) {
      values +=
          (c > 0 ? "," : "") + json_quote(memory.categories[c]) + ":" + std::to_string(memory.bytes[c][i]);
    }
    event("\"ph\":\"C\",\"name\":\"memory\"," + place(device, 0) +
          "\"ts\":" + microseconds(nanoseconds(memory.times[i])) + ",\"args\":{" + values + "}");
  }
}

}  // namespace

std::string chrome_trace(const TraceProcess& process) {
  TraceWriter writer;
  writer.add(process);
  return writer.finish();
}

std::string chrome_trace(const Report& report) {
  TraceWriter writer;
  for (const Run& run : report.runs) {
    const std::string name = report.runs.size() > 1 ? run.name + " " : "";
    const auto add = [&](const Track& track) {
      const std::string prefix = name + track.label + " ";
      writer.add({prefix, run.program, track.timeline, track.memory, track.kernels, run.slices, run.rows});
    };
    if (run.predicted) add(*run.predicted);
    for (const Track& track : run.measured) add(track);
  }
  return writer.finish();
}

}  // namespace penstock::report
