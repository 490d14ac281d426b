// SPDX-License-Identifier: Apache-2.0
// Programs with times and memory for the tests of reports and traces: evaluated by the plainest loop, apart
// from src/sim.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "report/report.h"
#include "schedule/deliveries.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"

namespace penstock::report {

using OpSeconds = std::function<Seconds(int device, const schedule::Op&)>;

inline schedule::Program example_program(const std::string& name, int devices, int micro_batches, int slices,
                                         int chunks = 0) {
  schedule::Lowering lowering;
  lowering.transfer_bytes = [](int, int) { return Bytes{1} << 20; };
  return lower(generate(name, schedule::request(devices, micro_batches, slices, chunks)), lowering);
}

// Forward 1 ms (later slices longer), backward twice that, a transfer 0.2 ms; `noise` is a share of each
// time.
inline OpSeconds example_seconds(double noise = 0) {
  return [noise](int device, const schedule::Op& op) {
    const auto key =
        stream_key(device * 1000 + op.key.stage, op.key.micro_batch * 100 + op.key.slice + int(op.kind) * 7);
    const double factor = 1 + noise * uniform(key, 1);
    if (is_send(op.kind)) return 0.2e-3 * factor;
    const double forward = 1e-3 + 0.04e-3 * op.key.slice;
    return (op.kind == schedule::OpKind::Backward ? 2 : 1) * forward * factor;
  };
}

// Carries a program out on paper: every op starts as soon as what it waits for is done and its lane is free.
class PaperClock {
 public:
  PaperClock(const schedule::Program& program, OpSeconds seconds)
      : program_(program), seconds_(std::move(seconds)) {
    for (const auto& device : program.devices) {
      timeline_.devices.emplace_back(device.ops.size());
      done_.emplace_back(device.ops.size(), false);
    }
    next_.assign(program.devices.size(), {});
    free_.assign(program.devices.size(), {});
    for (const schedule::Delivery& m : schedule::deliveries_of(program))
      send_of_[{m.destination, m.receive}] = {m.source, m.send};
  }

  schedule::Timeline run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (int d = 0; d < program_.device_count(); ++d) {
        for (int lane = 0; lane < 5; ++lane) {
          while (step(d, lane)) progress = true;
        }
      }
    }
    return timeline_;
  }

 private:
  bool step(int d, int lane) {
    const auto& list = program_.devices[d];
    std::size_t& next = next_[d][lane];
    while (next < list.ops.size() && static_cast<int>(lane_of(list.ops[next].kind)) != lane) ++next;
    if (next == list.ops.size()) return false;
    const schedule::Op& op = list.ops[next];
    Seconds start = free_[d][lane];
    for (const std::uint32_t wait : list.after_of(op)) {
      if (!done_[d][wait]) return false;
      start = std::max(start, timeline_.devices[d][wait].end);
    }
    Seconds end = start;
    if (is_receive(op.kind)) {
      const auto [peer, send] = send_of_.at({d, static_cast<std::uint32_t>(next)});
      if (!done_[peer][send]) return false;
      end = std::max(start, timeline_.devices[peer][send].end);
    } else {
      end += seconds_(d, op);
    }
    timeline_.devices[d][next] = {start, end};
    const bool transfer = is_receive(op.kind) || is_send(op.kind);
    free_[d][lane] = transfer ? start : end;
    done_[d][next] = true;
    return ++next, true;
  }

  const schedule::Program& program_;
  OpSeconds seconds_;
  schedule::Timeline timeline_;
  std::vector<std::vector<char>> done_;
  std::vector<std::array<std::size_t, 5>> next_;
  std::vector<std::array<Seconds, 5>> free_;
  std::map<std::pair<int, std::uint32_t>, std::pair<int, std::uint32_t>> send_of_;
};

// Weights all the time, 96 MiB of activations from each F to its B.
inline std::vector<MemorySeries> example_memory(const schedule::Program& program,
                                                const schedule::Timeline& timeline) {
  std::vector<MemorySeries> all;
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    MemorySeries memory{{"weights", "activations"}, {0}, {{600 * MiB}, {0}}};
    for (std::size_t op = 0; op < timeline.devices[d].size(); ++op) {
      const auto& event = timeline.devices[d][op];
      const auto kind = program.devices[d].ops[op].kind;
      if (kind != schedule::OpKind::Forward && kind != schedule::OpKind::Backward) continue;
      memory.times.push_back(event.end);
      memory.bytes[0].push_back(600 * MiB);
      memory.bytes[1].push_back(memory.bytes[1].back() +
                                (kind == schedule::OpKind::Forward ? 96 : -96) * MiB);
    }
    all.push_back(std::move(memory));
  }
  return all;
}

// Before the first compute op and after the last: "ramp"; in between: "dependency".
inline std::vector<IdleCause> example_idle(const schedule::Program& program,
                                           const schedule::Timeline& timeline) {
  IdleCause ramp{"ramp", {}}, dependency{"dependency", {}};
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    Seconds first = timeline.makespan(), last = 0, busy = 0;
    for (std::size_t op = 0; op < timeline.devices[d].size(); ++op) {
      const auto& event = timeline.devices[d][op];
      if (lane_of(program.devices[d].ops[op].kind) != schedule::Lane::Compute) continue;
      first = std::min(first, event.start);
      last = std::max(last, event.end);
      busy += event.end - event.start;
    }
    ramp.devices.push_back(timeline.makespan() - (last - first));
    dependency.devices.push_back(last - first - busy);
  }
  return {ramp, dependency};
}

inline Track example_track(const schedule::Program& program, const std::string& label, double noise = 0) {
  Track track{label, PaperClock(program, example_seconds(noise)).run(), {}, {}};
  track.memory = example_memory(program, track.timeline);
  track.idle = example_idle(program, track.timeline);
  return track;
}

inline Metric example_loss(int steps) {
  Metric metric{"loss", "nats", {}, {}};
  for (int step = 1; step <= steps; ++step) {
    metric.steps.push_back(step);
    metric.values.push_back(1.4 + 4.1 * std::exp(-step / (0.2 * steps)) + 0.1 * uniform(7, step));
  }
  return metric;
}

inline Metric example_throughput(int steps) {
  Metric metric{"throughput", "tokens/s", {}, {}};
  for (int step = 1; step <= steps; ++step) {
    metric.steps.push_back(step);
    metric.values.push_back(step < 3 ? 9000 : 14000 + 600 * uniform(9, step));
  }
  return metric;
}

// One run with a prediction and `steps` measured steps.
inline Run example_run(const std::string& name, schedule::Program program, int steps) {
  Run run;
  run.name = name;
  run.program = std::move(program);
  run.predicted = example_track(run.program, "predicted");
  for (int step = 0; step < steps; ++step) {
    run.measured.push_back(
        example_track(run.program, "step " + std::to_string(10 * step + 10), 0.15 + 0.05 * step));
  }
  run.metrics = {example_loss(300), example_throughput(300)};
  run.tables = {{"Memory of device 0",
                 {"category", "predicted", "measured"},
                 {{"weights", "600 MiB", "600 MiB"}, {"activations", "576 MiB", "577 MiB"}}}};
  run.configuration = "[schedule]\nname = \"" + name + "\"\nslices = 4\n";
  run.notes = {"Times are made up, by the tests of the report."};
  return run;
}

}  // namespace penstock::report
