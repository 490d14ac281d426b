// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/compare_schedules.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "schedule/generators/generator.h"
#include "schedule/passes/lower.h"
#include "sim/costs/unit.h"
#include "sim/result.h"

namespace penstock::cli {
namespace {

std::int64_t count_sends(const schedule::Program& program) {
  std::int64_t sends = 0;
  for (const schedule::DeviceProgram& device : program.devices) {
    sends +=
        std::ranges::count_if(device.ops, [](const schedule::Op& op) { return schedule::is_send(op.kind); });
  }
  return sends;
}

// Converts to micro-batches of one device's share of the layers: 1F1B's first device holds p of them.
std::string in_micro_batches(int peak, int units) { return number(static_cast<double>(peak) / units, 2); }

std::string row_of(const schedule::Generator& generator, const ScheduleFlags& flags) {
  const bool sliced = generator.sliced_sibling.empty();
  const int n = sliced && !flags.slices.empty() ? flags.slices.front() : 1;
  const std::string twice = generator.replicates_parameters ? " (parameters twice)" : "";
  const std::string head = "| " + std::string(generator.name) + twice + " | " + std::to_string(n) + " | ";
  try {
    const schedule::Program program = schedule::lower(
        schedule::generate(generator.name, schedule::request(flags.devices, flags.micro_batches, n)));
    const sim::Result result = sim::evaluate(program, sim::UnitCosts(), sim::kTotals);
    int peak = 0;
    int until_input = 0;
    for (const sim::DeviceResult& device : result.devices) {
      peak = std::max(peak, device.in_flight.peak);
      until_input = std::max(until_input, device.in_flight.peak_until_input);
    }
    const int chunks = program.stages / program.device_count();
    const int units = n * chunks;
    return head + std::to_string(chunks) + " | " + in_micro_batches(peak, units) + " | " +
           in_micro_batches(until_input, units) + " | " + percent(result.bubble_fraction) + " | " +
           percent(result.span_bubble_fraction) + " | " + std::to_string(count_sends(program)) + " |\n";
  } catch (const InputError& refusal) {
    return head + "- | " + refusal.what() + " | | | | |\n";
  }
}

}  // namespace

std::string compare_schedules(const ScheduleFlags& flags) {
  if (flags.devices < 1 || flags.micro_batches < 1)
    throw InputError("--compare needs -p DEVICES and -m MICRO_BATCHES");
  std::string table =
      "| schedule | n | v | in flight until B or W | until B or I | bubble of the step | of a device's span "
      "| sends |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const schedule::Generator& generator : schedule::generators()) table += row_of(generator, flags);
  return table;
}

}  // namespace penstock::cli
