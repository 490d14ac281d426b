// SPDX-License-Identifier: Apache-2.0
// Machine-readable results of a run: metrics.jsonl, one JSON object per step, and summary.json at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "files/event_file.h"
#include "model/memory/table.h"
#include "train/record/axis_traffic.h"
#include "train/record/document_work.h"
#include "train/record/expert_load.h"
#include "train/record/rank_times.h"
#include "train/record/start_mesh.h"

namespace penstock::train {

// Only the first step after a start of the program has these.
struct StartMetrics {
  std::int64_t resumed_from = 0;  // step
  Seconds load_s = 0;             // time to load weights and moments
  MeshOptions mesh = {};
};

struct StepMetrics {
  std::int64_t step = 0;           // from 1
  std::optional<double> loss = 0;  // nats per target; empty without targets
  double grad_norm = 0;            // before clipping
  double lr = 0;
  Tokens tokens = 0;  // trained on since the run began
  Seconds step_s = 0;
  Seconds time = 0;              // wall clock at the end of the step, since 1970
  Seconds checkpoint_s = 0;      // lost to checkpoints and copies since the last line
  std::int64_t checkpoint = 0;   // step of the newest complete checkpoint; 0: none yet
  double tokens_per_second = 0;  // of this step
  double mfu = 0;                // model FLOP/s / measured rate of matrix products
  double bubble_fraction = 0;
  Bytes peak_bytes = 0;                          // of the fullest device
  std::optional<double> copy_hidden;             // share of the copy time without a waiting rank
  std::optional<double> collective_hidden = {};  // the same for collectives between replicas
  LayerTraffic traffic = {};
  std::optional<ExpertLoad> load = {};         // if layers have experts
  std::optional<DocumentWork> documents = {};  // if sequences have several documents
  std::optional<RankTimes> rank_times = {};    // every 20 steps
  std::optional<StartMetrics> start = {};      // only in the first step since the program started
  bool skipped = false;                        // no update: no targets, or loss or gradient not finite
  std::optional<double> evaluation_loss;       // after this step's update
};

// Returns the metrics without their lists, which may be long.
StepMetrics without_lists(StepMetrics metrics);

// The TensorBoard curves of a step, "train/loss" and so on.
std::vector<files::NamedNumber> curves_of(const StepMetrics& metrics);

// One line without its line end. Numbers read back as the same doubles; non-finite values are null.
std::string to_json(const StepMetrics& metrics);

// metrics.jsonl: one line per step, also after a resume.
class MetricsFile {
 public:
  // Opens the file for lines after `last_step` (0: a new file). First removes lines of later steps and those
  // that lines_of_steps() leaves out. `last_line`: the line of `last_step`, appended if
  // the file lacks it; may be empty. Throws InputError if the file cannot be read, RunError if it cannot be
  // written.
  MetricsFile(std::string path, std::int64_t last_step, const std::string& last_line = {});
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  // Appends one line and passes it to the system before returning. Throws RunError naming the path.
  void write(const StepMetrics& metrics);

  // Flushes the file to disk. Throws RunError naming the path.
  void flush();

  // Calls flush() at most once a second: without this host, a run may resume from in-memory copies newer than
  // its last checkpoint.
  void flush_at_times();

  // Messages about damaged lines that were removed, and about steps up to `last_step` without a line; empty
  // if nothing is lost.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  std::string path_;
  std::vector<std::string> remarks_;
  int descriptor_ = -1;
  Seconds flushed_ = -std::numeric_limits<Seconds>::infinity();
};

using BytesByCategory = std::vector<std::pair<std::string, Bytes>>;  // in print order

struct DeviceSummary {
  BytesByCategory predicted_bytes;
  BytesByCategory measured_bytes;
};

// Predicted bytes: first the ledger's categories, then copies, host and disk, which the ledger does not
// count; last the total.
BytesByCategory predicted_bytes(const model::MemoryPeaks& memory);

// The peak resident set of one process and its accounted parts.
struct ResidentSummary {
  int first_device = 0;
  Bytes at_start = 0;             // peak before the first step
  Bytes predicted_libraries = 0;  // during steps, everything but tensors: code, data, buffers
  Bytes libraries = 0;            // measured after the second step
  Bytes predicted_tensors = 0;    // of its devices
  Bytes predicted_host = 0;       // offloaded to host memory
  Bytes checkpoint_copy = 0;      // staging buffer of checkpoints
  Bytes state_copies = 0;         // copies of train.buddy_every
  Bytes tensors = 0;              // measured
  Bytes measured = 0;             // peak resident set

  Bytes predicted() const { return std::max(at_start, in_steps()); }
  bool starts_fuller() const { return at_start > in_steps(); }  // so the parts are less than the whole

 private:
  Bytes in_steps() const {
    return predicted_libraries + predicted_tensors + predicted_host + checkpoint_copy + state_copies;
  }
};

struct Summary {
  std::int64_t steps = 0;
  std::int64_t resumed_from_step = 0;  // 0: a new run
  Tokens tokens = 0;                   // of all steps
  Seconds wall_s = 0;                  // of the steps since the resume
  double tokens_per_second = 0;        // over the steps since the resume
  double mfu = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step with targets
  std::optional<double> evaluation_loss;                   // after the last step
  std::optional<double> bigram_loss;                       // of a bigram table on the same held-out text
  std::optional<double> copy_hidden;                       // of the last step
  std::optional<double> collective_hidden = {};
  LayerTraffic traffic = {};  // of the last step
  Seconds step_s = 0;         // of the last step
  Seconds checkpoint_s = 0;   // lost to checkpoints and copies since the resume
  std::int64_t skipped_steps = 0;
  std::string machine;
  std::vector<double> rank_times;  // for equal work, over the median rank's; empty if not comparable
  std::vector<DeviceSummary> devices;
  std::vector<ResidentSummary> processes;
};

std::string to_json(const Summary& summary);

}  // namespace penstock::train
