// SPDX-License-Identifier: Apache-2.0
#include "train/record/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "files/atomic_file.h"
#include "files/file_system.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "files/strict_json.h"
#include "train/record/step_lines.h"

namespace penstock::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr Seconds kBetweenFlushes = 1;

OrderedJson optional(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

// Keeps the file as it was, for a user who knows better; says so.
std::string kept_damaged(const std::string& path) {
  const std::string copy = path + files::kDamaged;
  std::error_code error;
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing, error);
  return error ? std::string() : "; the file as it was is kept as " + copy;
}

// Names the steps after `first` and up to `last` without a line; empty if there are none.
std::string gaps_in(const std::map<std::int64_t, std::string_view>& lines, std::int64_t first,
                    std::int64_t last, const std::string& path, const char* why) {
  std::vector<std::string> gaps;
  std::int64_t next = first + 1;
  const auto note = [&](std::int64_t step) {
    if (step > next + 1) gaps.push_back(std::to_string(next) + " to " + std::to_string(step - 1));
    if (step == next + 1) gaps.push_back(std::to_string(next));
    next = step + 1;
  };
  for (auto line = lines.upper_bound(first); line != lines.end(); ++line) note(line->first);
  note(last + 1);
  if (gaps.empty()) return {};
  return path + " lacks the lines of steps " + join(gaps, ", ") + "; " + why;
}

OrderedJson to_object(const StartMetrics& start) {
  OrderedJson object{{"resumed_from", start.resumed_from}, {"load_s", start.load_s}};
  for (const auto& [key, value] : start.mesh)
    object[kMeshOfStart][key] = files::parse_or_discard<OrderedJson>(value);
  return object;
}

OrderedJson to_object(const BytesByCategory& bytes) {
  OrderedJson object = OrderedJson::object();
  for (const auto& [category, count] : bytes) object[category] = count;
  return object;
}

// Adds "tensor_bytes", "tensor_waited_s", and so on.
void add_traffic(OrderedJson& object, const LayerTraffic& traffic) {
  for (const auto& [group, of_axis] : traffic) {
    const std::string axis(name_of(group));
    object[axis + "_bytes"] = of_axis.sent;
    object[axis + "_waited_s"] = of_axis.waited;
  }
}

void add_work(OrderedJson& object, const DocumentWork& work) {
  object["padding_tokens"] = work.padding;
  object["attended"] = work.attended;
  if (work.slots) object["work_of_slots"] = *work.slots;
  object["work_of_micro_batches"] = work.micro_batches;
  object["work_of_replicas"] = work.replicas;
  object["planning_s"] = work.planning_s;
}

}  // namespace

std::string to_json(const StepMetrics& metrics) {
  OrderedJson line{{"step", metrics.step},
                   {"loss", optional(metrics.loss)},
                   {"grad_norm", metrics.grad_norm},
                   {"lr", metrics.lr},
                   {"tokens", metrics.tokens},
                   {"step_s", metrics.step_s},
                   {"time", metrics.time},
                   {"tokens_per_second", metrics.tokens_per_second},
                   {"mfu", metrics.mfu},
                   {"bubble_fraction", metrics.bubble_fraction},
                   {"peak_bytes", metrics.peak_bytes}};
  if (metrics.checkpoint_s > 0) line["checkpoint_s"] = metrics.checkpoint_s;
  if (metrics.checkpoint > 0) line[kNewestCheckpoint] = metrics.checkpoint;
  if (metrics.start) line["start"] = to_object(*metrics.start);
  if (metrics.copy_hidden) line["copy_hidden"] = *metrics.copy_hidden;
  if (metrics.collective_hidden) line["collective_hidden"] = *metrics.collective_hidden;
  add_traffic(line, metrics.traffic);
  if (metrics.load) {
    line["balance_loss"] = metrics.load->balance_loss;
    line["z_loss"] = metrics.load->z_loss;
    if (!metrics.load->rows.empty()) {
      line["expert_load"] = metrics.load->greatest_over_mean();
      line["expert_rows"] = metrics.load->rows;
    }
  }
  if (metrics.documents) add_work(line, *metrics.documents);
  if (metrics.rank_times) {
    line["rank_times"] = metrics.rank_times->times;
    line["slowest_over_median"] = metrics.rank_times->greatest();
    if (const std::vector<int> slow = metrics.rank_times->slow(); !slow.empty()) line["slow_ranks"] = slow;
  }
  if (metrics.skipped) line["skipped"] = true;
  if (metrics.evaluation_loss) line["evaluation_loss"] = *metrics.evaluation_loss;
  return line.dump();
}

StepMetrics without_lists(StepMetrics metrics) {
  metrics.rank_times.reset();
  metrics.documents.reset();
  if (metrics.load) metrics.load->rows.clear();
  return metrics;
}

std::vector<files::NamedNumber> curves_of(const StepMetrics& metrics) {
  std::vector<files::NamedNumber> curves{{"train/grad_norm", metrics.grad_norm},
                                         {"train/learning_rate", metrics.lr},
                                         {"speed/step_seconds", metrics.step_s},
                                         {"speed/tokens_per_second", metrics.tokens_per_second},
                                         {"speed/mfu", metrics.mfu},
                                         {"speed/bubble_fraction", metrics.bubble_fraction},
                                         {"memory/peak_bytes", static_cast<double>(metrics.peak_bytes)}};
  if (metrics.loss) curves.emplace_back("train/loss", *metrics.loss);
  if (metrics.load) {
    curves.emplace_back("train/balance_loss", metrics.load->balance_loss);
    curves.emplace_back("train/z_loss", metrics.load->z_loss);
    for (std::size_t layer = 0; layer < metrics.load->rows.size(); ++layer)
      curves.emplace_back("experts/greatest_over_mean_layer_" + std::to_string(layer),
                          metrics.load->greatest_over_mean(layer));
  }
  if (metrics.evaluation_loss) curves.emplace_back("evaluation/loss", *metrics.evaluation_loss);
  return curves;
}

MetricsFile::MetricsFile(std::string path, std::int64_t last_step, const std::string& last_line)
    : path_(std::move(path)) {
  const bool is_there = std::filesystem::exists(path_);
  std::optional<files::MappedFile> file;
  if (is_there && last_step > 0) file.emplace(path_);
  StepLines kept = lines_of_steps(file ? file->text() : std::string_view(), path_, last_step);
  if (kept.damaged > 0) kept.remark += kept_damaged(path_);
  // Gaps between lines that are all good were named by the start that found them.
  const bool all_good = is_there && kept.damaged == 0 && !kept.of_steps.empty();
  const std::int64_t first = all_good ? kept.of_steps.rbegin()->first : 0;
  if (!last_line.empty()) kept.of_steps.emplace(last_step, last_line);
  const char* why = !is_there          ? "the file was gone"
                    : kept.damaged > 0 ? "damaged lines are left out"
                                       : "a lost host takes with it lines not on disk yet";
  for (const std::string& remark : {kept.remark, gaps_in(kept.of_steps, first, last_step, path_, why)}) {
    if (!remark.empty()) remarks_.push_back(remark);
  }
  std::string text;
  for (const auto& [step, line] : kept.of_steps) text.append(line).append("\n");
  if (is_there || !text.empty()) files::write_atomically(path_, text);
  descriptor_ = files::file_system().open(path_, files::OpenFor::Appending);
  if (descriptor_ < 0) files::fail_to("cannot be written", path_);
}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void MetricsFile::write(const StepMetrics& metrics) {
  const std::string line = to_json(metrics) + "\n";
  files::write_all(descriptor_, std::as_bytes(std::span(line)), path_);
}

void MetricsFile::flush() {
  if (files::file_system().flush(descriptor_) != 0) files::fail_to("cannot be flushed", path_);
  flushed_ = steady_seconds();
}

void MetricsFile::flush_at_times() {
  if (steady_seconds() - flushed_ >= kBetweenFlushes) flush();
}

BytesByCategory predicted_bytes(const model::MemoryPeaks& memory) {
  BytesByCategory named;
  for (const auto& [name, bytes] : model::categories(memory)) named.emplace_back(name, bytes);
  named.emplace_back("host", memory.host);
  named.emplace_back("disk", memory.disk);
  named.emplace_back("total", memory.total());
  return named;
}

std::string to_json(const Summary& summary) {
  OrderedJson devices = OrderedJson::array();
  for (const DeviceSummary& device : summary.devices) {
    devices.push_back({{"predicted_bytes", to_object(device.predicted_bytes)},
                       {"measured_bytes", to_object(device.measured_bytes)}});
  }
  OrderedJson processes = OrderedJson::array();
  for (const ResidentSummary& process : summary.processes) {
    processes.push_back({{"first_device", process.first_device},
                         {"predicted_libraries_bytes", process.predicted_libraries},
                         {"libraries_bytes", process.libraries},
                         {"predicted_tensor_bytes", process.predicted_tensors},
                         {"predicted_host_bytes", process.predicted_host},
                         {"checkpoint_copy_bytes", process.checkpoint_copy},
                         {"state_copies_bytes", process.state_copies},
                         {"measured_tensor_bytes", process.tensors},
                         {"predicted_resident_bytes", process.predicted()},
                         {"measured_resident_bytes", process.measured}});
  }
  OrderedJson document{{"steps", summary.steps},
                       {"resumed_from_step", summary.resumed_from_step},
                       {"tokens", summary.tokens},
                       {"wall_s", summary.wall_s},
                       {"checkpoint_s", summary.checkpoint_s},
                       {"tokens_per_second", summary.tokens_per_second},
                       {"mfu", summary.mfu},
                       {"loss", summary.loss},
                       {"evaluation_loss", optional(summary.evaluation_loss)},
                       {"bigram_loss", optional(summary.bigram_loss)},
                       {"copy_hidden", optional(summary.copy_hidden)},
                       {"collective_hidden", optional(summary.collective_hidden)},
                       {"skipped_steps", summary.skipped_steps},
                       {"machine", summary.machine},
                       {"devices", devices},
                       {"processes", processes}};
  if (!summary.rank_times.empty()) document["rank_times"] = summary.rank_times;
  add_traffic(document, summary.traffic);
  return document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace penstock::train
