// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "base/option_text.h"
#include "base/text.h"
#include "cli/agree.h"
#include "cli/input/hardware_file.h"
#include "cli/input/number_flags.h"
#include "cli/input/output_path.h"
#include "cli/input/plan_file.h"
#include "cli/plan/slow_ranks.h"
#include "cli/report/plan_report.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "files/option_file.h"
#include "plan/plan_print.h"
#include "plan/published/reference_fit.h"
#include "plan/run_file.h"
#include "plan/simulated_step.h"
#include "report/html.h"
#include "run/resolve/resolve.h"
#include "train/trainable.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestTable = 64 << 20;
constexpr std::int64_t kUsualBatch = 32;

struct Flags {
  std::string file;
  std::string score;
  std::string fit;
  std::string from;
  PlanFlags question;  // its hardware: a folder with --score and --fit
  std::string write;
  std::string run_file;
  std::string report;
  bool explain = false;
  bool print_config = false;
  bool json = false;
  friend bool operator==(const Flags&, const Flags&) = default;
};

plan::HardwareSet hardware_for_tables(const std::string& folder) {
  if (!folder.empty()) return read_hardware_folder(folder);
  return read_hardware_folder(fs::path(find_hardware_file("h800", "")).parent_path());
}

plan::Table read_table(const std::string& path) {
  return plan::Table(files::read_text(path, kLongestTable), path);
}

Exit score_table(const Flags& flags) {
  const plan::Score score =
      plan::score(read_table(flags.score), hardware_for_tables(flags.question.hardware));
  std::cout << (flags.json ? plan::print_score_json(score) : plan::print_score(score));
  return Exit::Done;
}

Exit fit_constants(const Flags& flags) {
  const auto tables = plan::reference_fit_tables(
      [&](const std::string& name) { return read_table((fs::path(flags.fit) / (name + ".csv")).string()); });
  std::cout << plan::print_fit(
      plan::fit_reference(tables, hardware_for_tables(flags.question.hardware), /*leave_out=*/true));
  return Exit::Done;
}

// The one configuration of [layout] as a plan of its own.
plan::Plan plan_of_layout(const PlanQuestion& question) {
  const auto offload = question.options.memory.offload;
  plan::Candidate candidate;
  candidate.layout = plan::layout_of(question.options, question.workload, question.cluster);
  candidate.layout.offload = offload.word.empty() ? offload.number : 0.0;
  candidate.memory =
      plan::fit_memory(question.workload, candidate.layout, question.cluster.limit, offload.word.empty());
  candidate.layout.offload = candidate.memory.offload;
  candidate.cost = plan::step_cost(question.workload, candidate.layout, question.cluster.hardware,
                                   question.cluster.engine);
  plan::Plan plan{question.workload, question.cluster, {}};
  if (plan::action_count(question.workload, candidate.layout) <= plan::kMostSimulatedActions) {
    const auto step = plan::simulate_step(question.workload, question.cluster, candidate.layout);
    if (step) candidate.simulated = step->result.makespan;
  }
  plan.result.candidates = 1;
  plan.result.best = {candidate};
  if (!candidate.memory.fits)
    plan.result.rejected[static_cast<std::size_t>(plan::Rejection::DeviceMemory)] = 1;
  return plan;
}

plan::Plan plan_of_search(const PlanQuestion& question, const Flags& flags) {
  plan::Plan plan{question.workload, question.cluster, {}};
  constexpr std::size_t kTried = 48;  // by simulation, in each list
  const auto best = static_cast<std::size_t>(question.options.search.best);
  plan.result = plan::search(question.workload, question.cluster, plan::space_of(question.options),
                             std::max(best, kTried));
  if (!plan.result.best.empty()) {
    plan::simulate_best(question.workload, question.cluster, plan.result,
                        static_cast<std::size_t>(question.options.search.simulate),
                        !question.options.memory.offload.word.empty());
  }
  plan.result.best.resize(std::min(best, plan.result.best.size()));
  if (plan.result.best.empty()) {
    throw NoAnswer((flags.file.empty() ? "" : flags.file + ": ") + plan::print_nearest_miss(plan));
  }
  return plan;
}

// Begins with the trainer's refusal, if any.
std::string run_file_of(const PlanQuestion& question, const plan::Candidate& winner,
                        const std::string& directory) {
  const std::string text =
      plan::run_file(question.workload, question.cluster, winner, question.options.workload.text, directory);
  run::Options options;
  files::read_toml(text, "run file", run::describe(options));
  const Refusal refusal = refusal_of([&] { train::require_trainable(run::lay_out(options, {})); });
  return refusal ? "# the trainer cannot run this yet: " + refusal.text + "\n" + text : text;
}

void write_files(const PlanQuestion& question, const plan::Plan& plan, const Flags& flags) {
  if (!flags.run_file.empty()) {
    const std::string directory = "runs/" + fs::path(flags.run_file).stem().string();
    files::write_atomically(flags.run_file, run_file_of(question, plan.result.best[0], directory));
  }
  if (!flags.report.empty()) files::write_atomically(flags.report, report::html_page(plan_report(plan)));
}

std::string with_assumed(std::string json, const Words& assumed) {
  json.erase(json.rfind('}'));
  return json + ",\"assumed\":" + json_quote_all(assumed) + "}\n";
}

// Exit 1 when the one configuration does not fit.
Exit answer(const PlanQuestion& question, const Flags& flags) {
  plan::Plan plan = flags.explain ? plan_of_layout(question) : plan_of_search(question, flags);
  const plan::Candidate& first = plan.result.best[0];
  if (!flags.json && !question.assumed.empty())
    std::cout << question.options.cluster.hardware
              << " leaves open, assumed: " << join(question.assumed, ", ") << "\n";
  if (flags.json) {
    std::cout << with_assumed(plan::print_plan_json(plan), question.assumed);
  } else if (flags.explain) {
    std::cout << plan::explain(question.workload, question.cluster, first);
  } else {
    std::cout << plan::print_plan(plan);
  }
  write_files(question, plan, flags);
  return first.memory.fits ? Exit::Done : Exit::No;
}

// Refuses flags that would be ignored.
void refuse_idle_flags(const Flags& flags) {
  if (!flags.from.empty()) {
    Flags alone;
    alone.from = flags.from;
    if (flags != alone) throw InputError("--from asks about one run; leave out the other words");
    return;
  }
  const bool table = !flags.score.empty() || !flags.fit.empty();
  if (!flags.score.empty() && !flags.fit.empty())
    throw InputError("--score and --fit are both given; keep one");
  if (table && !flags.file.empty())
    throw InputError("\"" + printable(flags.file) + "\" and --score or --fit are both given; keep one");
  PlanFlags folder;
  folder.hardware = flags.question.hardware;
  const bool asks = !flags.run_file.empty() || !flags.report.empty() || !flags.write.empty() ||
                    flags.explain || flags.print_config ||
                    overrides_of(folder) != overrides_of(flags.question);
  if (table && asks)
    throw InputError(
        "--explain, --run-file, --report and the flags of a question are of plans; leave out --score and "
        "--fit");
  if (!table && flags.file.empty() && flags.question.model.empty())
    throw InputError(
        "penstock plan needs a plan file, or --model with --gpus and --seq-len; or --score FILE or --fit "
        "FOLDER");
  check_new_output("--run-file", flags.run_file);
  check_new_output("--write", flags.write);
  check_output("--report", flags.report);
}

// What differs from the defaults, as a plan file.
std::string file_of(PlanQuestion& question) {
  plan::PlanOptions defaults;
  OptionTable table, default_table;
  plan::describe(question.options, table);
  plan::describe(defaults, default_table);
  return print_changed_toml(table, default_table);
}

Exit carry_out(const Flags& flags, const std::vector<std::string>& overrides) {
  refuse_idle_flags(flags);
  if (!flags.from.empty() && !overrides.empty())
    throw InputError("\"" + printable(overrides.front()) + "\": --from asks about one run as it is");
  if (!flags.from.empty()) {
    std::cout << propose_layers(flags.from);
    return Exit::Done;
  }
  if ((!flags.score.empty() || !flags.fit.empty()) && !overrides.empty())
    throw InputError("\"" + printable(overrides.front()) + "\": keys are of a plan file");
  for (const std::string& override : overrides) {
    if (!flags.explain && override.starts_with("--layout."))
      throw InputError("\"" + printable(override) +
                       "\": [layout] is what --explain explains; give --explain too");
  }
  if (!flags.score.empty()) return score_table(flags);
  if (!flags.fit.empty()) return fit_constants(flags);
  PlanFlags asked = flags.question;
  if (flags.file.empty() && asked.batch == 0) asked.batch = kUsualBatch;
  std::vector<std::string> words = overrides_of(asked);
  words.insert(words.end(), overrides.begin(), overrides.end());
  PlanQuestion question = read_plan_file(flags.file, words);
  if (flags.print_config) {
    std::cout << file_of(question);
    return Exit::Done;
  }
  if (!flags.write.empty()) files::write_atomically(flags.write, file_of(question));
  return answer(question, flags);
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
  command->add_option("--report", flags->report, "write the plan as an HTML page here");
  command->add_option("--score", flags->score, "predict the rows of a published table, beside its figures");
  command->add_option("--fit", flags->fit,
                      "fit the constants of the hardware files on the tables of this folder");
  command->add_option("--from", flags->from,
                      "propose layers for the ranks of this finished run (a directory), if some are slow");
  command->add_option("--model", flags->question.model,
                      "without a plan file: a known model (llama-70b-gqa), or a folder with a config.json");
  command->add_option("--gpus", flags->question.gpus, "cluster.gpus")->check(whole_number_from(1));
  command->add_option("--seq-len", flags->question.seq_len, "workload.seq_len")->check(whole_number_from(1));
  command
      ->add_option("--batch", flags->question.batch, "workload.global_batch; default 32 without a plan file")
      ->check(whole_number_from(1));
  command->add_option("--hardware", flags->question.hardware,
                      "cluster.hardware; with --score and --fit the folder of hardware files");
  command->add_option("--write", flags->write, "write the question as a plan file here");
  command->add_flag("--print-config", flags->print_config, "print the question as a plan file and end");
  command->allow_extras();
  command->footer("Each key of the plan file can be given here too, as --section.key VALUE:\n\n" +
                  plan::options_help());
  command->callback([command, flags, &exit_code] { exit_code = carry_out(*flags, command->remaining()); });
}

}  // namespace penstock::cli
