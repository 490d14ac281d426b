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
#define PENSTOCK_SCHEDULE(function, ...) Generator{.generate = function, __VA_ARGS__},
#include "schedule/generators/catalogue.inc"
#undef PENSTOCK_SCHEDULE
};

// Beyond this a list of actions no longer fits in the memory of an ordinary machine.
constexpr double kMostEntries = 5e7;

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
    if (n > std::numeric_limits<decltype(Key::slice)>::max()) {
      throw InputError("slices (n) must be at most 32767, got " + std::to_string(n));
    }
  }
}

void require_group(const Generator& generator, const Request& request) {
  if (request.group < 0) {
    throw InputError("slices per group must be at least 1, or 0 for automatic, got " +
                     std::to_string(request.group));
  }
  if (request.group == 0 || (generator.takes_groups && request.chunks > 1)) return;
  throw InputError("only slimpipe with v > 1 has groups of slices: group = " + std::to_string(request.group) +
                   " with " + std::string(generator.name) + ", v = " + std::to_string(request.chunks) +
                   "; leave the group out");
}

void require_few_entries(double entries) {
  if (entries <= kMostEntries) return;
  throw InputError("the schedule would have p·v·m·n = " + number(entries, 0) + " entries; at most " +
                   number(kMostEntries, 0) + " are possible: lower p, v, m or n");
}

double count_entries(const Request& request) {
  double entries = 0;
  for (const int n : request.slices) entries += n;
  return entries * request.devices * request.chunks;
}

}  // namespace

Request request(int devices, int micro_batches, int slices, int chunks) {
  require_positive("micro-batches", "m", micro_batches);
  if (micro_batches > kMostEntries) {  // the list of micro-batches alone would be too long
    double entries = micro_batches;
    for (const int factor : {devices, slices, chunks}) entries *= std::max(1, factor);
    require_few_entries(entries);
  }
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
  require_group(generator, request);
  require_few_entries(count_entries(request));
  Schedule schedule = generator.generate(request);
  schedule.name = generator.name;
  return schedule;
}

}  // namespace penstock::schedule
