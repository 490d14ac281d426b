// SPDX-License-Identifier: Apache-2.0
#include "fuzz/coverage.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

extern "C" const char __executable_start;  // of the linker: addresses differ from process to process by it

namespace penstock::fuzz {
namespace {

constexpr int kEdgeBits = 18;
constexpr std::size_t kEdges = std::size_t{1} << kEdgeBits;
constexpr std::size_t kStride = 8;  // read at once: few edges are reached
constexpr std::size_t kCounts = 8;  // that a feature tells apart

std::array<std::uint8_t, kEdges> times;
std::uint32_t previous_block = 0;
bool noting = false;

std::uint32_t scattered(std::uint64_t address) {
  return static_cast<std::uint32_t>((address * 0x9E3779B97F4A7C15u) >> (64 - kEdgeBits));
}

std::uint32_t step_of(std::uint8_t count) {
  if (count < 4) return count - 1u;
  return count >= 128 ? 7u : std::min(static_cast<std::uint32_t>(std::bit_width(count)), 6u);
}

std::size_t new_ones(const std::vector<Feature>& features, const std::vector<bool>& reached) {
  return std::ranges::count_if(features, [&](Feature feature) { return !reached[feature]; });
}

void add(std::vector<bool>& reached, const std::vector<Feature>& features) {
  reached.resize(kEdges * kCounts);
  for (const Feature feature : features) reached[feature] = true;
}

}  // namespace

// Called at the beginning of every block of instrumented code.
extern "C" void __sanitizer_cov_trace_pc() {
  if (!noting) return;
  const auto address = static_cast<const char*>(__builtin_return_address(0)) - &__executable_start;
  const std::uint32_t block = scattered(static_cast<std::uint64_t>(address));
  std::uint8_t& count = times[block ^ (previous_block >> 1)];
  count = static_cast<std::uint8_t>(count + (count < UINT8_MAX));
  previous_block = block;
}

void begin_coverage() {
  times.fill(0);
  previous_block = 0;
  noting = true;
}

std::vector<Feature> covered_features() {
  noting = false;
  std::vector<Feature> features;
  for (std::size_t begin = 0; begin < kEdges; begin += kStride) {
    std::uint64_t counts = 0;
    std::memcpy(&counts, &times[begin], kStride);
    if (counts == 0) continue;
    for (std::size_t edge = begin; edge < begin + kStride; ++edge) {
      if (times[edge] > 0) features.push_back(static_cast<Feature>(edge * kCounts + step_of(times[edge])));
    }
  }
  return features;
}

void NewInputs::know(const std::vector<Feature>& features) {
  add(known_, features);
  add(reached_, features);
}

bool NewInputs::note(const std::string& input, std::vector<Feature> features) {
  reached_.resize(kEdges * kCounts);
  if (new_ones(features, reached_) == 0) return false;
  add(reached_, features);
  kept_.push_back({input, std::move(features)});
  return true;
}

std::vector<std::string> NewInputs::choose(std::size_t most) const {
  std::vector<bool> reached = known_;
  reached.resize(kEdges * kCounts);
  std::vector<std::string> chosen;
  while (chosen.size() < most) {
    const Kept* best = nullptr;
    std::size_t gain = 0;
    for (const Kept& kept : kept_) {
      const std::size_t added = new_ones(kept.features, reached);
      const bool shorter = added == gain && best != nullptr && kept.input.size() < best->input.size();
      if (added > gain || shorter) best = &kept, gain = added;
    }
    if (best == nullptr) break;
    add(reached, best->features);
    chosen.push_back(best->input);
  }
  return chosen;
}

}  // namespace penstock::fuzz
