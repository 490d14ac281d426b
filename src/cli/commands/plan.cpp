// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <filesystem>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/agree.h"
#include "cli/input/machine_sets.h"
#include "cli/input/number_flags.h"
#include "cli/input/output_path.h"
#include "cli/plan/slow_ranks.h"
#include "cli/report/plan_report.h"
#include "cli/report/score_report.h"
#include "cli/tell.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "files/option_file.h"
#include "plan/answer.h"
#include "plan/plan_print.h"
#include "plan/published/confidence.h"
#include "plan/published/reference_fit.h"
#include "plan/question.h"
#include "plan/run_file.h"
#include "plan/trainers/settings.h"
#include "report/html.h"
#include "run/description_file.h"
#include "run/resolve/resolve.h"
#include "train/trainable.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestTable = 64 << 20;

struct Flags {
  std::string file;
  std::string score;
  std::string fit;
  std::string checked;
  std::string from;
  plan::QuestionFlags question;  // with --score and --fit its hardware is a folder
  std::string write;
  std::string run_file;
  std::string exported;
  std::string report;
  bool explain = false;
  bool print_config = false;
  bool json = false;
  friend bool operator==(const Flags&, const Flags&) = default;
};

plan::KnownMachines machines_for_tables(const std::string& folder) {
  return {read_hardware_folder(folder.empty() ? run::description_folder("hardware") : folder),
          read_engines()};
}

plan::Table read_table(const std::string& path) {
  return plan::Table(files::read_text(path, kLongestTable), path);
}

Exit score_table(const Flags& flags) {
  const plan::Table table = read_table(flags.score);
  const plan::KnownMachines known = machines_for_tables(flags.question.hardware);
  const plan::Score score = plan::score(table, known);
  if (!flags.report.empty())
    files::write_atomically(flags.report, report::html_page(score_report(table, score, known)));
  std::cout << (flags.json ? plan::print_score_json(score) : plan::print_score(score));
  Exit exit = Exit::Done;
  for (const plan::RefusedRow& row : score.refused) {
    if (!row.bad_input) continue;
    tell(row.reason);
    exit = Exit::WrongInput;
  }
  return exit;
}

Exit fit_constants(const Flags& flags) {
  const auto tables = plan::reference_fit_tables(
      [&](const std::string& name) { return read_table((fs::path(flags.fit) / (name + ".csv")).string()); });
  const plan::Fit fit =
      plan::fit_reference(tables, machines_for_tables(flags.question.hardware), /*leave_out=*/true);
  if (!flags.checked.empty()) files::write_atomically(flags.checked, plan::print_checked(fit));
  std::cout << plan::print_fit(fit);
  return Exit::Done;
}

// Starts with the trainer's refusal, as a comment, if there is one.
std::string run_file_of(const plan::Question& question, const plan::Candidate& winner,
                        const std::string& directory) {
  const std::string text =
      plan::run_file(question.workload, question.cluster, winner, question.options.workload.text, directory);
  run::Options options;
  files::read_toml(text, "run file", run::describe(options));
  const Refusal refusal = refusal_of([&] { train::require_trainable(run::lay_out(options, {})); });
  return refusal ? "# the trainer cannot run this yet: " + refusal.text + "\n" + text : text;
}

void write_files(const plan::Question& question, const plan::Plan& plan, const Flags& flags) {
  if (!flags.run_file.empty()) {
    const std::string directory = "runs/" + fs::path(flags.run_file).stem().string();
    files::write_atomically(flags.run_file, run_file_of(question, plan.result.best[0], directory));
  }
  if (!flags.exported.empty())
    files::write_atomically(flags.exported,
                            plan::print_settings(*question.cluster.trainer, plan, plan.result.best[0]));
  if (!flags.report.empty()) files::write_atomically(flags.report, report::html_page(plan_report(plan)));
}

// Returns Exit::No (1) if the first configuration does not fit.
Exit answer(const plan::Question& question, const Flags& flags) {
  if (question.cluster.trainer && !flags.run_file.empty())
    throw InputError(
        "--run-file works only with Penstock's own trainer; --export writes the configuration of " +
        std::string(question.cluster.trainer->name));
  if (question.cluster.trainer == nullptr && !flags.exported.empty())
    throw InputError(
        "--export writes the configuration of --engine megatron or torchtitan; expected one of them, not " +
        question.options.cluster.engine);
  if (!flags.run_file.empty()) plan::require_run_file(question.workload, question.cluster, "--run-file");
  if (!flags.exported.empty()) plan::require_swiglu(question.workload.model, "--export");
  const plan::Plan plan = flags.explain ? plan::answer_for_layout(question) : plan::answer(question);
  if (flags.json && plan.result.best.empty()) std::cout << plan::print_answer_json(question, plan);
  plan::require_answer(plan, flags.file);
  const plan::Candidate& first = plan.result.best[0];
  write_files(question, plan, flags);  // before a reader of the output, such as head, may end this process
  if (!flags.json && !question.assumed.empty())
    std::cout << question.options.cluster.hardware
              << " does not give these, assumed: " << join(question.assumed, ", ") << "\n";
  if (flags.json) {
    std::cout << plan::print_answer_json(question, plan);
  } else if (flags.explain) {
    std::cout << plan::explain(question.workload, question.cluster, first)
              << print(plan::confidence_in(question, plan), "Step");
  } else {
    std::cout << plan::print_plan(plan) << print(plan::confidence_in(question, plan), "Step of the first");
  }
  return first.memory.fits ? Exit::Done : Exit::No;
}

// Refuses what --score and --fit ignore.
void refuse_idle_flags_of_tables(const Flags& flags) {
  if (!flags.score.empty() && !flags.fit.empty())
    throw InputError("--score and --fit are both given; keep one");
  if (!flags.fit.empty() && flags.json)
    throw InputError("--json works for plans and --score; --fit prints its constants as text");
  if (!flags.file.empty())
    throw InputError("\"" + printable(flags.file) + "\" and --score or --fit are both given; keep one");
  plan::QuestionFlags folder;
  folder.hardware = flags.question.hardware;
  const bool asks = !flags.run_file.empty() || !flags.exported.empty() ||
                    (!flags.report.empty() && flags.score.empty()) || !flags.write.empty() || flags.explain ||
                    flags.print_config || overrides_of(folder) != overrides_of(flags.question);
  if (asks)
    throw InputError(
        "--explain, --run-file and the flags of a question work for plans, --report for plans and --score; "
        "leave out --score and --fit");
}

// Refuses a plan without a question, and what --print-config ignores.
void refuse_idle_flags_of_plans(const Flags& flags) {
  if (flags.file.empty() && flags.question.model.empty())
    throw InputError(
        "penstock plan needs a plan file, or --model with --gpus and --seq-len; or --score FILE or --fit "
        "FOLDER");
  const bool answers = flags.json || !flags.run_file.empty() || !flags.exported.empty() ||
                       !flags.write.empty() || !flags.report.empty();
  if (flags.print_config && answers)
    throw InputError(
        "--print-config prints the plan file and plans nothing; leave out --json and the flags that write "
        "files");
}

void check_outputs(const Flags& flags) {
  if (!flags.checked.empty() && flags.fit.empty()) throw InputError("--checked needs --fit; give --fit too");
  std::error_code error;
  if (!flags.checked.empty() &&
      std::filesystem::equivalent(std::filesystem::absolute(flags.checked).parent_path(), flags.fit, error))
    throw InputError("--checked " + printable(flags.checked, 500) +
                     " is in the folder whose tables --fit reads; name a file elsewhere");
  check_apart({{"--checked", flags.checked},
               {"--run-file", flags.run_file},
               {"--export", flags.exported},
               {"--write", flags.write},
               {"--report", flags.report}},
              {flags.file, flags.score, flags.question.hardware, flags.question.engine});
  check_output("--checked", flags.checked);
  check_new_output("--run-file", flags.run_file);
  check_new_output("--export", flags.exported);
  check_new_output("--write", flags.write);
  check_output("--report", flags.report, kPageBegins);
}

void check_flags(const Flags& flags) {
  if (!flags.from.empty()) {
    Flags alone;
    alone.from = flags.from;
    if (flags != alone) throw InputError("--from takes one run; leave out the other arguments");
    return;
  }
  if (!flags.score.empty() || !flags.fit.empty()) {
    refuse_idle_flags_of_tables(flags);
  } else {
    refuse_idle_flags_of_plans(flags);
  }
  check_outputs(flags);
}

Exit carry_out(const Flags& flags, const std::vector<std::string>& overrides) {
  check_flags(flags);
  if (!flags.from.empty() && !overrides.empty())
    throw InputError("\"" + printable(overrides.front()) +
                     "\": --from takes one run as it is; leave this out");
  if (!flags.from.empty()) {
    std::cout << propose_layers(flags.from);
    return Exit::Done;
  }
  if ((!flags.score.empty() || !flags.fit.empty()) && !overrides.empty())
    throw InputError("\"" + printable(overrides.front()) +
                     "\": only plans take keys of a plan file; leave this out");
  for (const std::string& override : overrides) {
    if (!flags.explain && override.starts_with("--layout."))
      throw InputError("\"" + printable(override) +
                       "\": [layout] works only with --explain; give --explain too");
  }
  if (!flags.score.empty()) return score_table(flags);
  if (!flags.fit.empty()) return fit_constants(flags);
  plan::QuestionFlags asked = flags.question;
  if (flags.file.empty() && asked.batch == 0) asked.batch = plan::kUsualBatch;
  std::vector<std::string> words = plan::overrides_of(asked);
  words.insert(words.end(), overrides.begin(), overrides.end());
  const plan::Question question = plan::read_question(flags.file, words);
  if (flags.print_config) {
    std::cout << plan::print_question_file(question);
    return Exit::Done;
  }
  if (!flags.write.empty()) files::write_atomically(flags.write, plan::print_question_file(question));
  return answer(question, flags);
}

std::string known_names() {
  std::vector<std::string> names;
  for (const plan::Model& model : plan::known_models()) names.emplace_back(model.name);
  return join(names, ", ");
}

}  // namespace

void add_plan_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = program.add_subcommand(
      "plan", "Find the best way to run a model on a cluster: time, memory, and why. Exit 1: nothing fits.");
  command->add_option("file", flags->file, "a plan file (TOML); --section.key VALUE overrides it");
  command->add_flag("--json", flags->json, "the answer as JSON on stdout");
  command->add_flag("--explain", flags->explain,
                    "explain only the configuration of [layout], with every term");
  command->add_option("--run-file", flags->run_file, "write the winner's run file here");
  command->add_option(
      "--engine", flags->question.engine,
      "cluster.engine: penstock; megatron or torchtitan, with only what it supports; or an engine file");
  command->add_option("--export", flags->exported,
                      "with --engine megatron or torchtitan: write the winner's arguments or job file here");
  command->add_option("--report", flags->report, "write the plan as an HTML page here");
  command->add_option("--score", flags->score, "predict the rows of a published table, next to its figures");
  command->add_option(
      "--checked", flags->checked,
      "with --fit: write each published run's errors when left out of the fit, for the intervals of plans");
  command->add_option("--fit", flags->fit,
                      "fit the constants of the hardware files on the tables of this folder");
  command->add_option("--from", flags->from,
                      "propose layers for the ranks of this run directory, running or finished, if some are "
                      "slow");
  command->add_option(
      "--model", flags->question.model,
      "without a plan file: a known model (" + known_names() + "), or a folder with a config.json");
  command->add_option("--gpus", flags->question.gpus, "cluster.gpus")->check(whole_number_from(1));
  command->add_option("--seq-len", flags->question.seq_len, "workload.seq_len")->check(whole_number_from(1));
  command
      ->add_option("--batch", flags->question.batch, "workload.global_batch; default 32 without a plan file")
      ->check(whole_number_from(1));
  command->add_option("--hardware", flags->question.hardware,
                      "cluster.hardware; with --score and --fit: the folder of hardware files");
  command->add_option("--write", flags->write, "write the question as a plan file here");
  command->add_flag("--print-config", flags->print_config, "print the question as a plan file and exit");
  command->allow_extras();
  command->footer("Each key of the plan file can be given here too, as --section.key VALUE:\n\n" +
                  plan::options_help());
  command->callback([command, flags, &exit_code] { exit_code = carry_out(*flags, command->remaining()); });
}

}  // namespace penstock::cli
