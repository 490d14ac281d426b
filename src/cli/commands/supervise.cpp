// SPDX-License-Identifier: Apache-2.0
// penstock supervise: starts a training command again from its newest checkpoint for as long as that helps.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/input/number_flags.h"
#include "cli/report/run_report.h"
#include "cli/supervise/attempts.h"
#include "cli/supervise/child.h"
#include "cli/tell.h"
#include "files/atomic_file.h"
#include "files/mapped_file.h"
#include "files/run_files.h"
#include "report/html.h"
#include "run/options.h"
#include "run/settle.h"
#include "train/checkpoint/directory.h"
#include "train/run.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestMetrics = std::size_t{1} << 32;

struct SuperviseFlags {
  int restarts = 100;
  std::vector<std::string> command;
};

// "--section.key VALUE" or "--section.key=VALUE", as words that train takes for keys.
std::vector<std::string> keys_among(std::span<const std::string> words) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--") || word.substr(0, word.find('=')).find('.') == std::string_view::npos)
      continue;
    const bool value_follows = word.find('=') == std::string_view::npos && i + 1 < words.size();
    keys.push_back(value_follows ? words[i] + "=" + words[i + 1] : words[i]);
  }
  return keys;
}

// The directory of the run that the command trains.
std::string directory_of(const std::vector<std::string>& command) {
  const auto train = std::ranges::find(command, "train");
  const auto file = std::find_if(train, command.end(), [](const std::string& word) {
    return word.ends_with(".toml") && !word.starts_with("-");
  });
  if (file == command.end())
    throw InputError(
        "the command trains no run file; expected penstock supervise -- [mpirun ...] penstock train "
        "RUN.toml ...");
  const std::vector<std::string> words(file + 1, command.end());
  return run::read_options(*file, keys_among(words)).output.dir;
}

std::string path_in(const std::string& directory, const char* name) {
  return (fs::path(directory) / name).string();
}

std::string metrics_of(const std::string& directory) {
  const std::string path = path_in(directory, files::kMetrics);
  std::error_code error;
  return fs::exists(path, error) ? files::read_text(path, kLongestMetrics) : std::string();
}

// There is something to go on from: a run that has completed no step is begun anew.
bool resumes(const std::string& directory) { return !steps_after(0, metrics_of(directory)).empty(); }

std::int64_t newest_checkpoint(const std::string& directory) {
  const auto steps = train::checkpoints_in(directory).steps();
  return steps.empty() ? 0 : steps.back();
}

Attempt attempt(std::vector<std::string> command, const std::string& directory, bool& stopped) {
  Attempt attempt;
  if (resumes(directory) && std::ranges::find(command, "--resume") == command.end())
    command.emplace_back("--resume");
  if (std::ranges::find(command, "--resume") != command.end()) attempt.resumed = newest_checkpoint(directory);
  const Seconds began = steady_seconds();
  const ChildEnd end = run_child(command);
  attempt.seconds = steady_seconds() - began;
  attempt.exit_code = end.exit_code;
  attempt.complained = !end.complaint.empty();
  attempt.reason = !end.complaint.empty() ? end.complaint
                   : end.exit_code > 128  ? "ended by signal " + std::to_string(end.exit_code - 128)
                                          : "exit code " + std::to_string(end.exit_code);
  attempt.steps = steps_after(attempt.resumed, metrics_of(directory));
  stopped = end.stopped;
  return attempt;
}

void tell_failure(const std::vector<Attempt>& attempts, const Decision& decision) {
  const Attempt& last = attempts.back();
  tell("attempt " + std::to_string(attempts.size()) + " ended after step " +
       std::to_string(last.last_step()) + " (" + last.reason + "); " +
       (decision.again ? "starts again in " + print_seconds(decision.pause) : decision.why + ": gives up"));
}

// The page that the last attempt wrote knows of no attempts.
void renew_report(const std::string& directory) {
  const report::Report report{.title = "penstock supervise", .runs = runs_of_directory(directory)};
  files::write_atomically(path_in(directory, files::kReport), report::html_page(report));
}

Exit supervise(const SuperviseFlags& flags) {
  const std::string directory = directory_of(flags.command);
  std::vector<Attempt> attempts;
  Seconds pause = 0;
  for (;;) {
    bool stopped = false;
    attempts.push_back(attempt(flags.command, directory, stopped));
    attempts.back().pause = pause;
    const int exit_code = attempts.back().exit_code;
    std::error_code error;
    if (fs::is_directory(directory, error))
      files::write_atomically(path_in(directory, files::kAttempts), to_json(attempts));
    const bool good = exit_code == static_cast<int>(Exit::Done);
    if (good && fs::exists(path_in(directory, files::kReport), error)) renew_report(directory);
    if (good || stopped) {
      std::cout << print_time_use(attempts);
      return good ? Exit::Done : Exit::Failed;
    }
    const Decision decision = decide(attempts, flags.restarts);
    tell_failure(attempts, decision);
    if (!decision.again) return exit_code <= static_cast<int>(Exit::Failed) ? Exit{exit_code} : Exit::Failed;
    if (!pause_for(decision.pause)) return Exit::Failed;
    pause = decision.pause;
  }
}

}  // namespace

void add_supervise_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<SuperviseFlags>();
  CLI::App* command = program.add_subcommand(
      "supervise",
      "Carry out a training command, and start it again from its newest checkpoint when it fails.");
  command->add_option("--restarts", flags->restarts, "give up after so many")->check(whole_number_from(0));
  command->prefix_command();
  command->footer("The command follows: penstock supervise -- [mpirun ...] penstock train RUN.toml ...");
  command->callback([command, flags, &exit_code] {
    flags->command = command->remaining();
    if (flags->command.empty())
      throw InputError(
          "the command is missing; expected penstock supervise -- [mpirun ...] penstock train RUN.toml ...");
    exit_code = supervise(*flags);
  });
}

}  // namespace penstock::cli
