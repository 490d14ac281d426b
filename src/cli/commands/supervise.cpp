// SPDX-License-Identifier: Apache-2.0
// penstock supervise: restarts a training command from its newest checkpoint for as long as that helps.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "cli/report/run_report.h"
#include "cli/start/whole.h"
#include "cli/supervise/attempts.h"
#include "cli/supervise/child.h"
#include "cli/supervise/command_words.h"
#include "cli/supervise/complaint.h"
#include "cli/supervise/hosts.h"
#include "cli/supervise/lost_hosts.h"
#include "cli/supervise/signals.h"
#include "cli/tell.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "report/html.h"
#include "run/options.h"
#include "run/settle.h"
#include "train/checkpoint/directory.h"
#include "train/record/run_directory.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

struct SuperviseFlags {
  int restarts = 100;
  std::vector<std::string> command;
};

// Returns whether the word's value is the next word: "--section.key VALUE", "--ranks N".
bool value_follows(std::string_view word) {
  const bool takes_one = word.find('.') != std::string_view::npos || word == "--ranks" || word == "--sample";
  return word.starts_with("--") && takes_one && word.find('=') == std::string_view::npos;
}

// Collects "--section.key VALUE" and "--section.key=VALUE" as "--section.key=VALUE".
std::vector<std::string> keys_among(std::span<const std::string> words) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--") || word.substr(0, word.find('=')).find('.') == std::string_view::npos)
      continue;
    const bool in_two = value_follows(word) && i + 1 < words.size();
    keys.push_back(in_two ? words[i] + "=" + words[i + 1] : words[i]);
  }
  return keys;
}

// Options of the run that the command trains, read where mpirun starts it.
run::Options options_of(const std::vector<std::string>& command) {
  const std::span<const std::string> words = std::span(command).subspan(train_word(command));
  std::size_t file = 1;
  while (file < words.size() && words[file].starts_with("-")) file += value_follows(words[file]) ? 2 : 1;
  if (file >= words.size())
    throw InputError(
        "the command does not train a run file; expected penstock supervise -- [mpirun ...] penstock train "
        "RUN.toml ...");
  const fs::path there = directory_asked(command);
  std::error_code error;
  if (!there.empty() && !fs::is_directory(there, error))
    throw InputError(printable(there.string(), 500) + ": is not a directory");
  run::Options options = run::read_options((there / words[file]).string(), keys_among(words));
  options.output.dir = (there / options.output.dir).string();
  return options;
}

std::string path_in(const std::string& directory, const char* name) {
  return (fs::path(directory) / name).string();
}

Recorded recorded_of(const std::string& directory) {
  const std::string metrics = path_in(directory, files::kMetrics);
  std::error_code error;
  const bool there = fs::exists(metrics, error);
  if (error) throw InputError(printable(metrics, 500) + ": " + error.message());
  return there ? recorded_in(files::MappedFile(metrics).text()) : Recorded{};
}

// Returns the current records; if they cannot be read, `known`.
Recorded recorded_now(const std::string& directory, const Recorded& known) try {
  return recorded_of(directory);
} catch (const InputError& failure) {
  tell(std::string(failure.what()) + "; the last attempt's progress is unknown");
  return known;
}

// Whether the run may have completed a step: a run without one begins anew. metrics.jsonl may be lost or
// damaged, so this also asks for checkpoints, and for the number of copies in memory. A run that has only its
// number begins at step 1 with --resume too.
bool has_a_step(const std::string& directory, const Recorded& recorded) try {
  std::error_code error;
  return recorded.last_step > 0 || fs::exists(path_in(directory, files::kNumber), error) ||
         !train::checkpoints_in(directory).steps().empty();
} catch (const InputError&) {
  return true;  // the command tells why they cannot be read
}

// Returns attempts.json of a run that continues; empty for one that begins anew. A damaged one is kept under
// another name, since it will be replaced.
std::string attempts_before(const std::string& directory, const Recorded& recorded) {
  if (!has_a_step(directory, recorded)) return {};
  const std::string path = path_in(directory, files::kAttempts);
  const std::string text = files::read_text_if_there(path, files::kLongestRecord).value_or("");
  if (text.empty() || has_attempts(text)) return text;
  const std::string aside = path + files::kDamaged;
  std::error_code error;
  fs::rename(path, aside, error);
  tell(path + " is damaged: earlier attempts are not counted" + (error ? "" : "; it is kept as " + aside));
  return {};
}

// Whether the complaint says why the command ended. What a signal ended had no time to complain: its last
// line is of something else, unless another rank's failure led to the signal.
bool complains(const ChildEnd& end) {
  return !end.complaint.empty() && (end.signal == 0 || failure_of_rank(end.complaint));
}

std::string reason_of(const ChildEnd& end) {
  if (complains(end)) return end.complaint;
  return end.signal > 0 ? "ended by signal " + std::to_string(end.signal)
                        : "exit code " + std::to_string(end.exit_code);
}

// A run under supervision.
struct Supervised {
  std::string directory;
  Recorded recorded;              // of all attempts as far as known
  bool had_step = false;          // before the first attempt
  bool resumes = false;           // although no step of it can be seen here
  std::string earlier;            // attempts.json of earlier supervisions
  std::vector<Attempt> attempts;  // of this one
};

bool in_use(const Attempt& attempt) {
  return attempt.refused() && attempt.reason.find(train::kInUse) != std::string::npos;
}

// Whether the directory holds a run that an earlier attempt began where its steps cannot be seen from here,
// such as in another working directory.
bool began_unseen(const Supervised& run, const Attempt& last) {
  return last.refused() && !run.attempts.empty() && last.reason.find(train::kHoldsARun) != std::string::npos;
}

// Empty if asked to end before the command is started.
std::optional<Attempt> attempt(std::vector<std::string> command, Supervised& run) {
  const Recorded before = recorded_now(run.directory, run.recorded);
  // A run that uses the directory may have recorded attempts of its own.
  if (std::ranges::all_of(run.attempts, in_use)) run.earlier = attempts_before(run.directory, before);
  if ((run.resumes || has_a_step(run.directory, before)) &&
      std::ranges::find(command, "--resume") == command.end())
    command.emplace_back("--resume");
  Attempt attempt{.began = wall_seconds()};
  const Seconds began = steady_seconds();
  const std::optional<ChildEnd> end = run_child(command);
  if (!end) return {};
  attempt.seconds = steady_seconds() - began;
  attempt.exit_code = end->exit_code;
  attempt.complained = complains(*end);
  attempt.reason = reason_of(*end);
  run.recorded = recorded_now(run.directory, before);
  if (has_new_start(run.recorded, before)) {
    attempt.resumed = run.recorded.start.resumed;
    attempt.load = run.recorded.start.load;
    attempt.steps = run.recorded.start.steps;
  }
  run.resumes = run.resumes || began_unseen(run, attempt);
  attempt.may_pass = began_unseen(run, attempt) || ((run.had_step || run.resumes) && in_use(attempt));
  return attempt;
}

void tell_failure(const std::vector<Attempt>& attempts, const Decision& decision) {
  const Attempt& last = attempts.back();
  const std::string when =
      last.has_step() ? "after step " + std::to_string(last.last_step()) : "before its first step";
  tell("attempt " + std::to_string(attempts.size()) + " ended " + when + ": " + last.reason + "; " +
       (decision.again ? "starts again in " + print_seconds(decision.pause) : decision.why + ": gives up"));
}

// A failed write only warns: the run may be done, and on a full disk it can still be restarted.
template <class Write>
void record(Write&& write) try {
  write();
} catch (const std::exception& failure) {
  tell(std::string(failure.what()) + "; the attempts are not recorded");
}

// Adds the attempts to the summary and page that the last attempt wrote without them.
void tell_of_attempts(const std::string& directory, const std::string& attempts) {
  const std::string path = path_in(directory, files::kSummary);
  const auto summary = files::read_text_if_there(path, files::kLongestRecord);
  if (!summary) return;  // the run was stopped; a page that is there is of an earlier end
  files::write_atomically(path, with_time_use(*summary, attempts));
  std::error_code error;
  if (!fs::exists(path_in(directory, files::kReport), error)) return;
  const report::Report report{.title = "penstock supervise", .runs = runs_of_directory(directory)};
  files::write_atomically(path_in(directory, files::kReport), report::html_page(report));
}

// Ends a supervision that starts nothing more, although the run is not done.
Exit end_early(const std::vector<Attempt>& attempts) {
  if (asked_to_end()) tell("asked to end");
  if (!attempts.empty()) std::cout << print_time_use(attempts);
  return Exit::Failed;
}

void record_attempts(const Supervised& run) {
  const Attempt& last = run.attempts.back();
  if (in_use(last)) return;  // the directory is another run's
  const std::string told = to_json(run.attempts, run.earlier);
  record([&] {
    std::error_code error;
    if (fs::is_directory(run.directory, error))
      files::write_atomically(path_in(run.directory, files::kAttempts), told);
  });
  if (last.good()) record([&] { tell_of_attempts(run.directory, told); });
}

Exit supervise(const SuperviseFlags& flags) {
  std::signal(SIGPIPE, SIG_IGN);  // the run continues when nobody reads the log any more
  const PassingOn passing;
  const run::Options options = options_of(flags.command);
  const std::optional<NamedHosts> named = named_hosts(flags.command);
  if (named) require_all(flags.command, *named);
  Supervised run{.directory = options.output.dir, .recorded = recorded_of(options.output.dir)};
  run.had_step = has_a_step(run.directory, run.recorded);
  std::vector<Attempt>& attempts = run.attempts;
  Seconds ended = steady_seconds();
  for (;;) {
    std::optional<MpirunCommand> command = flags.command;
    if (named && !attempts.empty())
      command = command_on_what_is_left(flags.command, *named, options, flags.restarts);
    if (!command) return end_early(attempts);
    const Seconds pause = attempts.empty() ? 0 : steady_seconds() - ended;
    std::optional<Attempt> last = attempt(*command, run);
    if (!last) return end_early(attempts);
    last->pause = pause;
    ended = steady_seconds();
    attempts.push_back(*last);
    record_attempts(run);
    if (last->good()) {
      std::cout << print_time_use(attempts);
      return Exit::Done;
    }
    if (asked_to_end()) return end_early(attempts);
    const Decision decision = decide(attempts, flags.restarts);
    // If the first attempt was refused, the run's own line is enough.
    if (decision.again || attempts.size() > 1 || !last->refused()) tell_failure(attempts, decision);
    if (!decision.again)
      return last->exit_code <= static_cast<int>(Exit::Failed) ? Exit{last->exit_code} : Exit::Failed;
    if (!pause_for(decision.pause)) return end_early(attempts);
  }
}

}  // namespace

void add_supervise_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<SuperviseFlags>();
  CLI::App* command = program.add_subcommand(
      "supervise", "Run a training command, and restart it from its newest checkpoint when it fails.");
  command->add_option("--restarts", flags->restarts, "give up after this many restarts, default 100")
      ->check(whole_number_from(0));
  command->prefix_command();
  command->footer("The command follows: penstock supervise -- [mpirun ...] penstock train RUN.toml ...");
  command->callback([command, flags, &exit_code] {
    flags->command = command->remaining();
    if (flags->command.empty())
      throw InputError(
          "the command is missing; expected penstock supervise -- [mpirun ...] penstock train RUN.toml ...");
    become_whole_now();  // the final report needs it, and nothing may be started twice
    exit_code = supervise(*flags);
  });
}

}  // namespace penstock::cli
