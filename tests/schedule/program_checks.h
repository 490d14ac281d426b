// SPDX-License-Identifier: Apache-2.0
// What check() says first of a program, and programs that lack one op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/check/check.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Rule and text of the first finding, or "legal".
inline std::string first_finding(const Program& program) {
  const std::vector<Finding> findings = check(program);
  return findings.empty() ? "legal" : std::string(name_of(findings[0].rule)) + ": " + findings[0].text;
}

// Waits for the op go with it.
inline Program without(const Program& program, int device, std::uint32_t victim) {
  Program result = program;
  DeviceProgram& row = result.devices[device];
  row = {};
  for (std::uint32_t i = 0; i < program.devices[device].ops.size(); ++i) {
    if (i == victim) continue;
    std::vector<std::uint32_t> waits;
    for (const std::uint32_t wait : program.devices[device].after_of(program.devices[device].ops[i])) {
      if (wait != victim) waits.push_back(wait - (wait > victim ? 1 : 0));
    }
    row.append(program.devices[device].ops[i], waits);
  }
  return result;
}

}  // namespace penstock::schedule
