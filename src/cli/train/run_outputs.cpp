// SPDX-License-Identifier: Apache-2.0
#include "cli/train/run_outputs.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "backend/device.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/report/run_report.h"
#include "cli/tell.h"
#include "cli/train/memory_report.h"
#include "files/atomic_file.h"
#include "files/run_files.h"
#include "report/html.h"
#include "report/trace.h"
#include "schedule/program_text.h"
#include "train/machine.h"
#include "train/sample.h"

namespace penstock::cli {
namespace {

// Lists the files that exist; the timeline's are missing if no step was left to do.
std::string list_outputs(const train::RunDirectory& directory) {
  std::vector<std::string> names;
  for (const char* name : files::entries_that(&files::RunEntry::listed)) {
    if (std::filesystem::exists(directory.file(name))) names.emplace_back(name);
  }
  const std::string report = directory.report();
  return "files     " + directory.path() + ": " + join(names, ", ") + "\n" +
         (std::filesystem::exists(report) ? "report    " + report + "\n" : std::string());
}

// Traffic and exposed communication inside layers.
std::string traffic_lines(const train::Summary& summary) {
  std::string lines;
  for (const auto& [group, traffic] : summary.traffic) {
    const std::string axis(name_of(group));
    lines += axis + std::string(10 - axis.size(), ' ') + print_bytes(traffic.sent) + " a step between " +
             axis + " ranks, waited for during " + number(100.0 * traffic.waited / summary.step_s, 1) +
             " % of it at most\n";
  }
  return lines;
}

}  // namespace

void write_pages(const train::RunDirectory& directory) try {
  const report::Report report{.title = "penstock train", .runs = runs_of_directory(directory.path())};
  files::write_atomically(directory.file(files::kTrace), report::chrome_trace(report));
  files::write_atomically(directory.report(), report::html_page(report));
} catch (const InputError& failure) {
  tell_remark(std::string(failure.what()) + "; the run has no trace and no page");
}

std::string profile_of(const schedule::Program& program, const train::RunOutcome& outcome) {
  Seconds compute = 0;
  for (const run::StepTimeline& step : outcome.timelines) {
    for (std::size_t device = 0; device < step.timeline.devices.size(); ++device) {
      const std::vector<schedule::Event>& events = step.timeline.devices[device];
      for (std::size_t op = 0; op < events.size(); ++op) {
        const schedule::OpKind kind = program.devices[device].ops[op].kind;
        const schedule::Event& event = events[op];
        if (lane_of(kind) == schedule::Lane::Compute) compute += event.end - event.start;
      }
    }
  }
  return "compute time of a step, all devices together (mean of the last " +
         std::to_string(outcome.profiles.size()) + ")\n" + profile_table(outcome.profiles, compute) +
         traffic_lines(outcome.summary);
}

std::string result_table(const run::Run& run, const train::Summary& summary, const std::string& sample,
                         const train::RunDirectory& directory) {
  std::ostringstream text;
  text << "trained   " << counted(summary.steps, "step") << ", "
       << print_count(static_cast<double>(summary.tokens)) << " tokens";
  const bool did_steps = summary.resumed_from_step < summary.steps;
  if (!did_steps) {
    text << ", all of them before this start";
  } else {
    if (summary.resumed_from_step > 0) text << ", those since step " << summary.resumed_from_step;
    text << " in " << print_seconds(summary.wall_s) << ", " << print_count(summary.tokens_per_second)
         << " tokens/s";
  }
  text << ", loss " << number(summary.loss, 4) << "\n";
  if (summary.skipped_steps > 0) {
    text << "skipped   " << counted(summary.skipped_steps, "step")
         << " whose loss or gradient was not finite, or whose batch had no target\n";
  }
  if (summary.evaluation_loss && summary.bigram_loss) {
    text << "held out  " << number(*summary.evaluation_loss, 4) << " nats a byte; a table of byte pairs has "
         << number(*summary.bigram_loss, 4) << "\n";
  } else if (summary.evaluation_loss) {
    text << "held out  " << number(*summary.evaluation_loss, 4) << " nats a token\n";
  }
  if (did_steps) text << memory_after(summary);
  if (summary.copy_hidden) {
    text << "copies    " << number(100.0 * *summary.copy_hidden, 1)
         << " % of the offloading copies' time was hidden behind computation\n";
  }
  if (summary.collective_hidden) {
    text << "replicas  " << number(100.0 * *summary.collective_hidden, 1)
         << " % of the time of collectives between replicas was hidden behind computation\n";
  }
  text << traffic_lines(summary);
  text << sample_lines(run, sample) << list_outputs(directory);
  return text.str();
}

std::string sample_lines(const run::Run& run, const std::string& sample) {
  if (sample.empty()) return {};
  return "sample    after the first " + std::to_string(train::prompt_bytes(run.options.data.seq_len)) +
         " bytes " + (run.options.data.validation_fraction > 0 ? "held out" : "of the text") + "\n\n" +
         printable_lines(sample) + "\n\n";  // a model's bytes may be no text
}

std::string stop_line(const run::Run& run, const train::RunOutcome& outcome) {
  const std::string line = "stopped   after step " + std::to_string(outcome.steps) + " as asked; ";
  const std::string resumes = outcome.checkpoint + ", from which --resume continues\n";
  if (outcome.checkpoint_step == outcome.steps) return line + "checkpoint " + resumes;
  return line + "no checkpoint of it, since " +
         (run.options.train.checkpoint_every == 0 ? "train.checkpoint_every = 0"
                                                  : "its loss or gradient is not finite") +
         (outcome.checkpoint.empty() ? "\n" : "; the newest is " + resumes);
}

std::string finished_line(const run::Run& run) {
  return "finished  all " + counted(run.options.train.steps, "step") + " of " + run.options.output.dir +
         " are done; a greater train.steps continues\n";
}

std::string memory_remark(const run::Run& run, int ranks) {
  Bytes tensors = 0, away = 0;
  for (const model::MemoryPeaks& device : run.predicted) {
    tensors += device.total() * run.mesh.ranks_per_stage();
    away += device.host * run.mesh.ranks_per_stage();
  }
  const auto line = [&](const std::string& memory, Bytes size, Bytes needed) {
    return "machine   has " + memory + "; " + std::to_string(ranks) +
           (ranks == 1 ? " rank needs " : " ranks together need ") + print_bytes(needed) +
           (size > 0 && needed > size ? ": more than one such machine has\n" : "\n");
  };
  const Bytes host = train::this_host().memory;
  const std::string of_host = (host > 0 ? print_bytes(host) : std::string("unknown")) + " of memory";
  const std::optional<backend::Gpu> gpu = backend::gpu();
  if (!gpu) return line(of_host, host, tensors + away);
  const Bytes gpus = gpu->total * gpu->gpus;
  // If a launcher shows each rank its own GPU, this is not the sum over all GPUs.
  return line(counted(gpu->gpus, "GPU") + " with " + print_bytes(gpus), 0, tensors) +
         (away > 0 ? line(of_host, host, away) : "");
}

}  // namespace penstock::cli
