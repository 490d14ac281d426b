// SPDX-License-Identifier: Apache-2.0
#include "schedule/generators/generator.h"

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "schedule/generators/catalogue.h"
#include "schedule/text.h"

namespace penstock::schedule {

namespace {

constexpr std::array kGenerators{
#define PENSTOCK_SCHEDULE(function, ...) Generator{.generate = function, __VA_ARGS__},
#include "schedule/generators/catalogue.inc"
#undef PENSTOCK_SCHEDULE
};

// Upper bound of actions: longer lists do not fit in the memory of an ordinary machine.
constexpr double kMostEntries = 5e7;

void require_positive(std::string_view what, std::string_view symbol, std::int64_t value) {
  if (value >= 1) return;
  throw InputError(std::string(what) + " (" + std::string(symbol) + ") must be at least 1, got " +
                   std::to_string(value));
}

void require_at_most(std::string_view what, std::string_view symbol, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  throw InputError(std::string(what) + " (" + std::string(symbol) + ") must be at most " +
                   std::to_string(most) + ", got " + std::to_string(value));
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
    require_at_most("slices", "n", n, kMostSlices);
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

// Enforces the limits of the text form, so that every generated schedule can be read back.
void require_readable(const Request& request) {
  require_at_most("pipeline size", "p", request.devices, kMostDevices);
  require_at_most("stages", "p·v", std::int64_t{request.devices} * request.chunks, kMostStages);
  require_at_most("micro-batches", "m", request.micro_batches(), kMostMicroBatches);
}

double count_entries(const Request& request) {
  double entries = 0;
  for (const int n : request.slices) entries += n;
  return entries * request.devices * request.chunks;
}

}  // namespace

Request request(int devices, int micro_batches, int slices, int chunks) {
  require_positive("micro-batches", "m", micro_batches);
  require_at_most("micro-batches", "m", micro_batches, kMostMicroBatches);
  return {devices, std::vector<int>(micro_batches, slices), chunks, 0};
}

std::span<const Generator> generators() { return kGenerators; }

const Generator& find_generator(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Generator& generator : kGenerators) {
    if (generator.name == name) return generator;
    names.push_back(generator.name);
  }
  throw InputError("schedule: \"" + printable(name) + "\" is unknown" + instead_of(name, names));
}

Request checked_request(std::string_view name, const Request& asked) {
  const Generator& generator = find_generator(name);
  Request request = asked;
  require_positive("pipeline size", "p", request.devices);
  if (request.chunks == 0) request.chunks = generator.default_chunks;
  require_chunks(generator, request);
  require_slices(generator, request);
  require_group(generator, request);
  require_few_entries(count_entries(request));
  require_readable(request);
  return request;
}

Schedule generate(std::string_view name, const Request& request) {
  const Generator& generator = find_generator(name);
  Schedule schedule = generator.generate(checked_request(name, request));
  schedule.name = generator.name;
  return schedule;
}

}  // namespace penstock::schedule
