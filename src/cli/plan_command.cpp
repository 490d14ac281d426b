// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_command.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/hardware_file.h"
#include "cli/plan_file.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "plan/plan_print.h"
#include "plan/reference_fit.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestTable = 64 << 20;

struct Flags {
  std::string file;
  std::string score;
  std::string fit;
  std::string hardware;
  std::string run_file;
  bool explain = false;
  bool json = false;
};

plan::HardwareSet hardware_for_tables(const std::string& folder) {
  if (!folder.empty()) return read_hardware_folder(folder);
  return read_hardware_folder(fs::path(find_hardware_file("h800", "")).parent_path());
}

plan::Table read_table(const std::string& path) {
  return plan::Table(files::read_text(path, kLongestTable), path);
}

Exit score_table(const Flags& flags) {
  const plan::Score score = plan::score(read_table(flags.score), hardware_for_tables(flags.hardware));
  std::cout << (flags.json ? plan::print_score_json(score) : plan::print_score(score));
  return Exit::Done;
}

Exit fit_constants(const Flags& flags) {
  const auto tables = plan::reference_fit_tables(
      [&](const std::string& name) { return read_table((fs::path(flags.fit) / (name + ".csv")).string()); });
  std::cout << plan::print_fit(
      plan::fit_reference(tables, hardware_for_tables(flags.hardware), /*leave_out=*/true));
  return Exit::Done;
}

// The one configuration of [layout]; exit 1 when it does not fit.
Exit explain_layout(const PlanQuestion& question) {
  const auto offload = question.options.memory.offload;
  plan::Candidate candidate;
  candidate.layout = plan::layout_of(question.options, question.workload, question.cluster);
  candidate.layout.offload = offload.word.empty() ? offload.number : 0.0;
  candidate.memory =
      plan::fit_memory(question.workload, candidate.layout, question.cluster.limit, offload.word.empty());
  candidate.layout.offload = candidate.memory.offload;
  candidate.cost = plan::step_cost(question.workload, candidate.layout, question.cluster.hardware,
                                   question.cluster.engine);
  std::vector<plan::Candidate> one{candidate};
  plan::simulate_best(question.workload, question.cluster, one, 1);
  std::cout << plan::explain(question.workload, question.cluster, one[0]);
  return candidate.memory.fits ? Exit::Done : Exit::No;
}

void write_run_file(const PlanQuestion& question, const plan::Candidate& winner, const std::string& path) {
  const std::string directory = "runs/" + fs::path(path).stem().string();
  files::write_atomically(path, plan::run_file(question.workload, question.cluster, winner,
                                               question.options.workload.text, directory));
}

Exit search_layouts(const PlanQuestion& question, const Flags& flags) {
  const auto& keys = question.options.search;
  plan::Plan plan{question.workload, question.cluster, {}};
  plan.result = plan::search(question.workload, question.cluster, plan::space_of(question.options),
                             static_cast<std::size_t>(keys.best));
  if (plan.result.best.empty()) throw NoAnswer(flags.file + ": " + plan::print_nearest_miss(plan));
  plan::simulate_best(question.workload, question.cluster, plan.result.best,
                      static_cast<std::size_t>(keys.simulate));
  std::cout << (flags.json ? plan::print_plan_json(plan) : plan::print_plan(plan));
  if (!flags.run_file.empty()) write_run_file(question, plan.result.best[0], flags.run_file);
  return Exit::Done;
}

Exit carry_out(const Flags& flags, const std::vector<std::string>& overrides) {
  if (!flags.score.empty()) return score_table(flags);
  if (!flags.fit.empty()) return fit_constants(flags);
  if (flags.file.empty()) throw InputError("penstock plan needs a plan file, --score FILE or --fit FOLDER");
  const PlanQuestion question = read_plan_file(flags.file, overrides);
  return flags.explain ? explain_layout(question) : search_layouts(question, flags);
}

}  // namespace

void add_plan_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand(
      "plan", "The best way to run a model on a cluster: time, memory, and why. Exit 1: nothing fits.");
  command->add_option("file", flags->file, "a plan file (TOML); --section.key VALUE overrides it");
  command->add_flag("--json", flags->json, "the answer as JSON on stdout");
  command->add_flag("--explain", flags->explain, "the configuration of [layout] alone, with every term");
  command->add_option("--run-file", flags->run_file, "write the winner's run file here");
  command->add_option("--score", flags->score, "predict the rows of a published table, beside its figures");
  command->add_option("--fit", flags->fit,
                      "fit the constants of the hardware files on the tables of this folder");
  command->add_option("--hardware", flags->hardware, "folder of hardware files for --score and --fit");
  command->allow_extras();
  command->callback([command, flags, &exit_code] { exit_code = carry_out(*flags, command->remaining()); });
}

}  // namespace penstock::cli
