// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/generator.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "schedule/generators/catalogue.h"

namespace penstock::schedule {

namespace {

constexpr std::array kGenerators{
    Generator{"gpipe", "all forwards, then all backwards (Huang et al. 2019)", "terapipe", 1, gpipe},
    Generator{"terapipe", "gpipe in slices (Li et al. 2021)", "", 1, terapipe},
    Generator{"1f1b", "one forward, one backward (Narayanan et al. 2021)", "seq1f1b or slimpipe", 1,
              one_f_one_b},
    Generator{"seq1f1b", "1f1b in slices (Sun et al. 2024)", "", 1, seq1f1b},
    Generator{.name = "interleaved",
              .summary = "1f1b over several chunks a device, in rounds (Narayanan et al. 2021)",
              .sliced_sibling = "seq1f1b-interleaved or slimpipe",
              .default_chunks = 2,
              .generate = interleaved,
              .any_chunks = true},
    Generator{.name = "seq1f1b-interleaved",
              .summary = "interleaved in slices (Sun et al. 2024)",
              .default_chunks = 2,
              .generate = seq1f1b_interleaved,
              .any_chunks = true},
    Generator{.name = "breadth-first",
              .summary = "all micro-batches through one chunk after the other (Lamy-Poirier 2023)",
              .sliced_sibling = "terapipe or slimpipe",
              .default_chunks = 2,
              .generate = breadth_first,
              .any_chunks = true},
    Generator{.name = "slimpipe",
              .summary = "slices in lock step, two more in flight per device (SlimPipe, SC'25)",
              .generate = slimpipe,
              .any_chunks = true},
    Generator{"zb-h1", "zero bubble in 1f1b's memory (Qi et al. 2023)", "slimpipe", 1, zb_h1},
    Generator{"zb-h2", "zero bubble in twice 1f1b's memory (Qi et al. 2023)", "slimpipe", 1, zb_h2},
    Generator{"zb-v", "zero bubble in 1f1b's memory, two chunks in a V (Qi et al. 2024)", "slimpipe", 2,
              zb_v},
    Generator{"v-half", "half of 1f1b's memory, two chunks in a V (Qi et al. 2024)", "slimpipe", 2, v_half},
    Generator{"v-min", "the least memory, two chunks in a V (Qi et al. 2024)", "slimpipe", 2, v_min},
    Generator{.name = "dualpipe",
              .summary = "two streams that cross, parameters twice (DeepSeek-V3 2024)",
              .sliced_sibling = "slimpipe",
              .generate = dualpipe,
              .fixed_gradient_order = false,
              .replicates_parameters = true},
    Generator{"dualpipe-v", "dualpipe cut in half, two chunks in a V (DeepSeek-V3 2024)", "slimpipe", 2,
              dualpipe_v},
};

// Beyond this a list of actions no longer fits in the memory of an ordinary machine.
constexpr double kMostEntries = 1e8;

void require_positive(std::string_view what, std::string_view symbol, std::int64_t value) {
  if (value >= 1) return;
  throw InputError(std::string(what) + " (" + std::string(symbol) + ") must be at least 1, got " +
                   std::to_string(value));
}

void require_chunks(const Generator& generator, const Request& request) {
  require_positive("chunks", "v", request.chunks);
  if (generator.any_chunks || request.chunks == generator.default_chunks) return;
  throw InputError(std::string(generator.name) + " needs v = " + std::to_string(generator.default_chunks) +
                   ", got " + std::to_string(request.chunks));
}

void require_slices(const Generator& generator, const Request& request) {
  require_positive("micro-batches", "m", request.micro_batches());
  for (const int n : request.slices) {
    require_positive("slices", "n", n);
    if (n > 1 && !generator.sliced_sibling.empty()) {
      throw InputError(std::string(generator.name) + " does not slice micro-batches: n = " +
                       std::to_string(n) + "; use n = 1, or " + std::string(generator.sliced_sibling));
    }
    if (n > std::numeric_limits<decltype(Action::slice)>::max()) {
      throw InputError("slices (n) must be at most 32767, got " + std::to_string(n));
    }
  }
}

void require_group(const Request& request) {
  if (request.group >= 0) return;
  throw InputError("slices per group must be at least 1, or 0 for automatic, got " +
                   std::to_string(request.group));
}

void require_size(const Request& request) {
  double entries = 0;
  for (const int n : request.slices) entries += n;
  entries *= static_cast<double>(request.devices) * request.chunks;
  if (entries > kMostEntries) {
    throw InputError("the schedule would have p·v·m·n = " + number(entries, 0) + " entries; at most " +
                     number(kMostEntries, 0) + " are possible: lower p, v, m or n");
  }
}

}  // namespace

Request request(int devices, int micro_batches, int slices, int chunks) {
  require_positive("micro-batches", "m", micro_batches);
  return {devices, std::vector<int>(micro_batches, slices), chunks, 0};
}

std::span<const Generator> generators() { return kGenerators; }

const Generator& find_generator(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Generator& generator : kGenerators) {
    if (generator.name == name) return generator;
    names.push_back(generator.name);
  }
  throw InputError("schedule: \"" + printable(name) + "\" is unknown; did you mean \"" +
                   std::string(nearest(name, names)) + "\"?");
}

Schedule generate(std::string_view name, const Request& asked) {
  const Generator& generator = find_generator(name);
  Request request = asked;
  require_positive("pipeline size", "p", request.devices);
  if (request.chunks == 0) request.chunks = generator.default_chunks;
  require_chunks(generator, request);
  require_slices(generator, request);
  require_group(request);
  require_size(request);
  Schedule schedule = generator.generate(request);
  schedule.name = generator.name;
  return schedule;
}

}  // namespace penstock::schedule
