// SPDX-License-Identifier: Apache-2.0
#include "cli/report/memory_series.h"

#include <numeric>

namespace penstock::cli {
namespace {

constexpr auto kTransient = static_cast<std::size_t>(nn::Category::Transient);
using ByCategory = std::array<Bytes, nn::kCategories>;

report::MemorySeries empty_series() {
  report::MemorySeries series;
  for (int i = 0; i < nn::kCategories; ++i) {
    series.categories.emplace_back(nn::name_of(static_cast<nn::Category>(i)));
    series.bytes.emplace_back();
  }
  return series;
}

void append(report::MemorySeries& series, Seconds time, const ByCategory& bytes) {
  series.times.push_back(time);
  for (std::size_t i = 0; i < bytes.size(); ++i) series.bytes[i].push_back(bytes[i]);
}

nn::Category category_of(sim::Held category) {
  switch (category) {
    case sim::Held::Records:
      return nn::Category::Activations;
    case sim::Held::WeightRecords:
      return nn::Category::WeightRecords;
    case sim::Held::KvGradients:
      return nn::Category::KvGradients;
    case sim::Held::Logits:
      return nn::Category::Logits;
    case sim::Held::Queues:
    case sim::Held::Buffers:
      return nn::Category::Transfers;
    case sim::Held::Transient:
      return nn::Category::Transient;
    case sim::Held::Weights:
      return nn::Category::Weights;
    case sim::Held::Gradients:
      return nn::Category::Gradients;
  }
  return nn::Category::Transient;
}

}  // namespace

report::MemorySeries predicted_series(const sim::DeviceMemory& memory, const model::DeviceMemory* standing) {
  report::MemorySeries series = empty_series();
  for (const sim::MemorySample& sample : memory.samples) {
    ByCategory bytes{};
    if (standing) {
      const auto passing = [&](sim::Held held) { return memory.peaks[static_cast<std::size_t>(held)]; };
      bytes[static_cast<std::size_t>(nn::Category::Weights)] =
          standing->weights - passing(sim::Held::Weights);
      bytes[static_cast<std::size_t>(nn::Category::Gradients)] =
          standing->gradients - passing(sim::Held::Gradients);
      bytes[static_cast<std::size_t>(nn::Category::Optimizer)] = standing->optimizer;
    }
    for (std::size_t i = 0; i < sample.bytes.size(); ++i) {
      bytes[static_cast<std::size_t>(category_of(static_cast<sim::Held>(i)))] += sample.bytes[i];
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
    std::size_t index = 0;
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (lane_of(ops[op].kind) != schedule::Lane::Compute) continue;
      const schedule::Event& event = step.result.timeline.devices[device][op];
      const train::OpMemory& memory = step.memory[device][index++];
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
