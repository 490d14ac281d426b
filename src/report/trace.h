// SPDX-License-Identifier: Apache-2.0
// A timeline as a Chrome trace, the JSON that Perfetto and chrome://tracing open.
//
// Devices are processes and lanes are threads; transfers that overlap on a lane get further threads ("receive
// 2"). An op is a complete event ("X") with its key, bytes and the ops it waited for as arguments. A flow
// leads from each send to its receive. A receive begins when its message is sent (its earlier posting time is
// an argument), since Perfetto reverses flows that lead to an earlier beginning. Memory is a counter of each
// process, one series per category. Context exchange, served and waited for, has a thread. Times are
// microseconds since the start of the step, rounded to whole nanoseconds. Format: "Trace Event Format",
// Google 2016; read by Perfetto's JSON importer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "report/report.h"
#include "schedule/program.h"
#include "schedule/timeline.h"

namespace penstock::report {

struct TraceProcess {
  std::string_view prefix;  // before "device 0", to tell several timelines of one trace apart; may be empty
  const schedule::Program& program;
  const schedule::Timeline& timeline;                     // of this program: one event per op
  std::span<const MemorySeries> memory = {};              // one per device, or empty
  std::span<const std::vector<KernelSpan>> kernels = {};  // one per device, or empty: a thread of their own
  std::span<const std::vector<std::string>> slices = {};  // contents of each [micro-batch][slice], or empty
  std::span<const std::string> rows = {};                 // names of the devices, or empty: "device 0", ...
};

std::string chrome_trace(const TraceProcess& process);

// All timelines of a report in one trace: predicted and measured ones on one time axis.
std::string chrome_trace(const Report& report);

}  // namespace penstock::report
