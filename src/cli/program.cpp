// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/held_signals.h"
#include "cli/standard_streams.h"
#include "cli/tell.h"
#include "files/bus_error.h"

namespace penstock::cli {
namespace {

// Begins a new line, as CLI11 does after longer ones, after a flag that leaves only one blank before its
// meaning.
class Formatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string text = CLI::Formatter::make_option(option, is_positional);
    const std::size_t column = get_column_width();
    const bool close = text.size() > column && text[column - 1] == ' ' && text[column - 2] != ' ' &&
                       text.find('\n') > column;
    return close ? text.replace(column - 1, 1, "\n" + std::string(column, ' ')) : text;
  }
};

int refuse(const std::string& text, Exit exit_code) {
  tell_once(text);
  return static_cast<int>(exit_code);
}

struct OutOfMemory : std::bad_alloc {
  const char* what() const noexcept override {
    return "out of memory: the system gives this process no more (a limit of ulimit -v, of a container, or "
           "of the host)";
  }
};

int fail(const std::exception& error) {
  tell(error.what());
  return static_cast<int>(Exit::Failed);
}

// CLI11 reports --help as an exception too; its text goes to stdout and the exit code is 0.
int stop_parsing(const CLI::App& program, const CLI::ParseError& stop, const std::string& command) {
  if (stop.get_exit_code() == 0) {
    program.exit(stop);
    require_printed();
    return static_cast<int>(Exit::Done);
  }
  return refuse(std::string(stop.what()) + " (see " + command + " --help)", Exit::WrongInput);
}

std::vector<std::string> names_of_commands(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// CLI11's own message only says that a command is required.
void require_command(const CLI::App& program, int argc, char** argv) {
  const std::vector<std::string> names = names_of_commands(program);
  if (argc < 2) throw InputError("a command is missing; use one of " + join(names, ", "));
  const std::string_view word = argv[1];
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) return;
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  throw InputError("unknown command \"" + printable(word) + "\"" + instead_of(word, candidates, ""));
}

// Joins "--section.key VALUE" to one word: CLI11 knows no such flag and would take VALUE for a file. Leaves
// the command after "--" of supervise as it is.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  bool own = true;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (own && word == "--" && !words.empty() && words.front() == "supervise") {
      own = false;
      continue;
    }
    const bool setting = own && word.starts_with("--") && word.find('.') != std::string::npos &&
                         word.find_first_of("=/ ") == std::string::npos;
    const bool has_value = i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--");
    if (setting && has_value) word += std::string("=") + argv[++i];
    words.push_back(std::move(word));
  }
  return words;
}

int parse_and_carry_out(CLI::App& program, const Exit& exit_code, int argc, char** argv) try {
  require_command(program, argc, argv);
  std::vector<std::string> words = words_of(argc, argv);
  std::ranges::reverse(words);  // the order that CLI11 expects
  program.parse(std::move(words));
  require_printed();
  return static_cast<int>(exit_code);
} catch (const CLI::ParseError& stop) {
  const std::string word = argc > 1 ? argv[1] : "";
  const std::vector<std::string> names = names_of_commands(program);
  const bool command = std::ranges::find(names, word) != names.end();
  return stop_parsing(program, stop, command ? "penstock " + word : "penstock");
}

bool answers_user_signals(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  return command == "train" || command == "supervise";
}

}  // namespace

const char* version() { return PENSTOCK_VERSION; }

int run(int argc, char** argv) {
  occupy_closed_streams();
  prctl(PR_SET_NAME, "penstock");  // name in ps and killall, also for penstock-compute
  if (answers_user_signals(argc, argv)) hold_user_signals();
  std::set_new_handler([] { throw OutOfMemory(); });
  files::explain_bus_errors(static_cast<int>(Exit::Failed));
  std::signal(SIGXFSZ, SIG_IGN);  // writes beyond a file size limit then fail as on a full disk
  CLI::App program(
      "Trains long-context transformers with pipelines of sequence slices, and tells beforehand how long a "
      "run takes and how much memory it needs.",
      "penstock");
  program.set_version_flag("--version", std::string("penstock ") + version(), "Print the version and exit");
  program.require_subcommand(1);
  program.formatter(std::make_shared<Formatter>());  // before the commands, which take it over
  Exit exit_code = Exit::Done;
  add_train_command(program, exit_code);
  add_plan_command(program, exit_code);
  add_explain_command(program, exit_code);
  add_data_command(program, exit_code);
  add_simulate_command(program, exit_code);
  add_show_command(program, exit_code);
  add_check_command(program, exit_code);
  add_profile_command(program, exit_code);
  add_convert_command(program, exit_code);
  add_report_command(program, exit_code);
  add_supervise_command(program, exit_code);
  add_man_command(program, exit_code);
  add_completion_command(program, exit_code);
  try {
    return parse_and_carry_out(program, exit_code, argc, argv);
  } catch (const InputError& error) {
    return refuse(error.what(), Exit::WrongInput);
  } catch (const NoAnswer& error) {
    return refuse(error.what(), Exit::No);
  } catch (const std::exception& error) {
    return fail(error);
  }
}

}  // namespace penstock::cli
