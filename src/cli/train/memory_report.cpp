// SPDX-License-Identifier: Apache-2.0
#include "cli/train/memory_report.h"

#include <algorithm>

#include "base/columns.h"
#include "base/text.h"
#include "base/units.h"

namespace penstock::cli {
namespace {

using Row = std::vector<std::string>;

// The names with bytes on any device, in the order of the first device; always "total".
std::vector<std::string> shown_names(const std::vector<train::BytesByCategory>& devices) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < devices.front().size(); ++i) {
    const std::string& name = devices.front()[i].first;
    const bool used = std::ranges::any_of(devices, [&](const auto& bytes) { return bytes[i].second > 0; });
    if (used || name == "total") names.push_back(name);
  }
  return names;
}

std::string cell(const train::BytesByCategory& bytes, const std::string& name) {
  const auto found = std::ranges::find(bytes, name, &std::pair<std::string, Bytes>::first);
  return found == bytes.end() || found->second == 0 ? "-" : print_bytes(found->second);
}

double as_share(Bytes part, Bytes whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string off_by(Bytes predicted, Bytes measured) {
  return number(100.0 * (as_share(predicted, measured) - 1.0), 1) + " %";
}

Bytes total_of(const train::BytesByCategory& bytes) {
  const auto found = std::ranges::find(bytes, "total", &std::pair<std::string, Bytes>::first);
  return found == bytes.end() ? 0 : found->second;
}

}  // namespace

std::string memory_before(const run::Run& run) {
  std::vector<train::BytesByCategory> devices;
  for (const model::MemoryPeaks& memory : run.predicted) devices.push_back(train::predicted_bytes(memory));
  const auto names = shown_names(devices);
  const std::string& limit = run.options.memory.limit;
  Rows rows{{"  predicted"}};
  rows.front().insert(rows.front().end(), names.begin(), names.end());
  if (!limit.empty()) rows.front().push_back("limit");
  for (std::size_t device = 0; device < devices.size(); ++device) {
    Row row{"  device " + std::to_string(device)};
    for (const std::string& name : names) row.push_back(cell(devices[device], name));
    if (!limit.empty()) row.push_back(limit);
    rows.push_back(std::move(row));
  }
  const std::string note = run.note(run::Topic::Memory);
  return "memory    peak of each device, by category; the total is the greatest sum at one time" +
         (note.empty() ? "" : "; " + note) + "\n" + columns(rows, "lr");
}

std::string memory_after(const train::Summary& summary) {
  std::vector<train::BytesByCategory> all;
  for (const train::DeviceSummary& device : summary.devices) {
    all.push_back(device.predicted_bytes);
  }
  const auto names = shown_names(all);
  Rows rows{{"  peak"}};
  rows.front().insert(rows.front().end(), names.begin(), names.end());
  rows.front().push_back("off by");
  for (std::size_t device = 0; device < summary.devices.size(); ++device) {
    const auto& [predicted, measured] = summary.devices[device];
    Row first{"  device " + std::to_string(device) + " predicted"};
    Row second{"  device " + std::to_string(device) + " measured"};
    for (const std::string& name : names) {
      first.push_back(cell(predicted, name));
      second.push_back(cell(measured, name));
    }
    first.push_back(off_by(total_of(predicted), total_of(measured)));
    second.push_back("");
    rows.push_back(std::move(first));
    rows.push_back(std::move(second));
  }
  std::string text = "memory    peak of each device\n" + columns(rows, "lr");
  for (const train::ResidentSummary& process : summary.processes) {
    text +=
        "  process of device " + std::to_string(process.first_device) + "  resident " +
        print_bytes(process.measured) + ", predicted " + print_bytes(process.predicted()) + " (" +
        off_by(process.predicted(), process.measured) +
        (process.starts_fuller() ? ", the peak of its start" : "") + "): tensors " +
        print_bytes(process.tensors) +
        (process.checkpoint_copy > 0 ? ", copy for checkpoints " + print_bytes(process.checkpoint_copy)
                                     : "") +
        (process.state_copies > 0 ? ", copies of states " + print_bytes(process.state_copies) : "") +
        (process.predicted_host > 0 ? ", records on the host " + print_bytes(process.predicted_host) : "") +
        ", libraries and the rest " + print_bytes(process.libraries) + ", predicted " +
        print_bytes(process.predicted_libraries) + "\n";
  }
  return text;
}

}  // namespace penstock::cli
