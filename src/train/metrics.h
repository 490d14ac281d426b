// SPDX-License-Identifier: Apache-2.0
// What a run leaves for programs to read: metrics.jsonl, one JSON object a step, and summary.json at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "files/event_file.h"
#include "model/memory_table.h"

namespace penstock::train {

struct StepMetrics {
  std::int64_t step = 0;  // from 1
  double loss = 0;        // nats per target
  double grad_norm = 0;   // before clipping
  double lr = 0;
  Tokens tokens = 0;  // trained on since the run began
  Seconds step_s = 0;
  double tokens_per_second = 0;  // of this step
  double mfu = 0;                // model FLOP/s beside the machine's measured matrix-product rate
  double bubble_fraction = 0;
  Bytes peak_bytes = 0;                   // of the fullest device
  std::optional<double> copy_hidden;      // share of the offloading copies that nobody waited for
  bool skipped = false;                   // loss or gradient was not finite: no update
  std::optional<double> evaluation_loss;  // after this step's update
};

// The curves of a step as TensorBoard shows them, "train/loss" and so on.
std::vector<files::NamedNumber> curves_of(const StepMetrics& metrics);

// One line without its end. Numbers read back to the same doubles; what is not finite is null.
std::string to_json(const StepMetrics& metrics);

// metrics.jsonl, with one line a step whatever happened before.
class MetricsFile {
 public:
  // Goes on after `last_step`: lines of later steps and a half-written line are taken out first. 0: begins
  // anew. Throws InputError when a line that stays is no metric, RunError when the file cannot be written.
  MetricsFile(std::string path, std::int64_t last_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  // Appends one line; it has reached the system when this returns. Throws RunError naming the path.
  void write(const StepMetrics& metrics);

  // What was written has reached the disk. Throws RunError naming the path.
  void flush();

 private:
  std::string path_;
  int descriptor_ = -1;
};

using BytesByCategory = std::vector<std::pair<std::string, Bytes>>;  // in the order of printing

struct DeviceSummary {
  BytesByCategory predicted_bytes;
  BytesByCategory measured_bytes;
};

// The bytes of a prediction by the names that a ledger has, then what has no ledger: copies, host, disk; last
// the total.
BytesByCategory predicted_bytes(const model::DeviceMemory& memory);

// The resident set of one process at its most, beside what was accounted in it.
struct ResidentSummary {
  int first_device = 0;
  Bytes libraries = 0;          // after the first step, all that was not tensors: code, data, buffers
  Bytes predicted_tensors = 0;  // of its devices
  Bytes predicted_host = 0;     // of their records in the host's memory
  Bytes checkpoint_copy = 0;    // what a checkpoint is written from while steps go on
  Bytes tensors = 0;            // measured
  Bytes measured = 0;           // of the process

  Bytes predicted() const { return libraries + predicted_tensors + predicted_host + checkpoint_copy; }
};

struct Summary {
  std::int64_t steps = 0;
  std::int64_t resumed_from_step = 0;  // the checkpoint's; 0: the run began anew
  Tokens tokens = 0;                   // of all steps
  Seconds wall_s = 0;                  // of the steps since then
  double tokens_per_second = 0;        // over the steps since then
  double mfu = 0;
  double loss = 0;                        // of the last step
  std::optional<double> evaluation_loss;  // after the last step
  std::optional<double> bigram_loss;      // of a table of byte pairs on the same held-out text
  std::optional<double> copy_hidden;      // of the last step
  std::int64_t skipped_steps = 0;
  std::string machine;
  std::vector<DeviceSummary> devices;
  std::vector<ResidentSummary> processes;
};

std::string to_json(const Summary& summary);

}  // namespace penstock::train
