// SPDX-License-Identifier: Apache-2.0
#include "cli/report/memory_series.h"

#include <numeric>

namespace penstock::cli {
namespace {

constexpr auto kTransient = static_cast<std::size_t>(model::Category::Transient);
using ByCategory = std::array<Bytes, model::kTensorCategories>;

report::MemorySeries empty_series() {
  report::MemorySeries series;
  for (int i = 0; i < model::kTensorCategories; ++i) {
    series.categories.emplace_back(model::name_of(static_cast<model::Category>(i)));
    series.bytes.emplace_back();
  }
  return series;
}

void append(report::MemorySeries& series, Seconds time, const ByCategory& bytes) {
  series.times.push_back(time);
  for (std::size_t i = 0; i < bytes.size(); ++i) series.bytes[i].push_back(bytes[i]);
}

}  // namespace

report::MemorySeries predicted_series(const sim::MemoryUse& memory, const model::MemoryPeaks* standing) {
  report::MemorySeries series = empty_series();
  for (const sim::MemorySample& sample : memory.samples) {
    ByCategory bytes{};
    if (standing) {
      const auto simulated = [&](sim::Held held) { return memory.peaks[static_cast<std::size_t>(held)]; };
      bytes[static_cast<std::size_t>(model::Category::Weights)] =
          standing->weights - simulated(sim::Held::Weights);
      bytes[static_cast<std::size_t>(model::Category::Gradients)] =
          standing->gradients - simulated(sim::Held::Gradients);
      bytes[static_cast<std::size_t>(model::Category::Optimizer)] = standing->optimizer;
      bytes[static_cast<std::size_t>(model::Category::Transfers)] = standing->buffers;
    }
    for (std::size_t i = 0; i < sample.bytes.size(); ++i) {
      bytes[static_cast<std::size_t>(sim::category_of(static_cast<sim::Held>(i)))] += sample.bytes[i];
    }
    append(series, sample.time, bytes);
  }
  return series;
}

std::vector<report::MemorySeries> measured_memory(const schedule::Program& program,
                                                  const MeasuredStep& step) {
  std::vector<report::MemorySeries> all;
  for (std::size_t device = 0; device < program.devices.size(); ++device) {
    report::MemorySeries series = empty_series();
    const auto& ops = program.devices[device].ops;
    ByCategory before = step.memory[device].empty() ? ByCategory{} : step.memory[device].back().live;
    append(series, 0, before);
    std::size_t index = 0;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (lane_of(ops[op].kind) != schedule::Lane::Compute) continue;
      const schedule::Event& event = step.result.timeline.devices[device][op];
      const run::OpMemory& memory = step.memory[device][index++];
      ByCategory during = before;
      const Bytes total = std::accumulate(before.begin(), before.end(), Bytes{0});
      during[kTransient] += std::max<Bytes>(0, memory.peak - total);
      append(series, event.start, during);
      append(series, event.end, memory.live);
      before = memory.live;
    }
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace penstock::cli
