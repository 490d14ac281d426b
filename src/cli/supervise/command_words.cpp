// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/command_words.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace penstock::cli {
namespace {

constexpr std::array<std::string_view, 3> kLaunchers{"mpirun", "mpiexec", "orterun"};
constexpr std::array<std::string_view, 3> kPrograms{"penstock", "penstock-compute", "penstock-cuda"};

// Options of Open MPI 4 and 5 that values follow, without their one or two dashes; words between blanks.
constexpr std::string_view kTwoValues = " mca gmca prtemca pmixmca ";
constexpr std::string_view kOneValue =
    " H N am app bind-to c cartofile cf cpu-list cpu-set cpus-per-proc cpus-per-rank debugger"
    " default-hostfile display dvm dvm-uri hnp host hostfile launch-agent machinefile map-by"
    " max-restarts max-vm-size n np npernode npersocket ompi-server output output-filename path"
    " personality ppr prefix preload-files rank-by rankfile report-events report-pid report-uri"
    " rf runtime-options stdin timeout tune wd wdir with-ft x xml-file xterm ";

std::string name_of_file(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string_view without_dashes(std::string_view option) {
  option.remove_prefix(option.starts_with("--") ? 2 : 1);
  return option;
}

}  // namespace

bool is_one_of(std::string_view word, std::span<const std::string_view> list) {
  return std::ranges::find(list, word) != list.end();
}

bool is_option(std::string_view word, std::span<const std::string_view> names) {
  return word.starts_with("-") && is_one_of(without_dashes(word), names);
}

std::size_t values_after(std::string_view option) {
  const std::string name = " " + std::string(without_dashes(option)) + " ";
  if (kTwoValues.find(name) != std::string_view::npos) return 2;
  return kOneValue.find(name) != std::string_view::npos ? 1 : 0;
}

bool starts_mpirun(const CommandWords& command) {
  return !command.empty() && is_one_of(name_of_file(command.front()), kLaunchers);
}

std::size_t program_of_mpirun(const CommandWords& command) {
  std::size_t word = 1;
  while (word < command.size() && command[word].starts_with("-")) word += 1 + values_after(command[word]);
  return std::min(word, command.size());
}

std::size_t train_word(const CommandWords& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "train" && is_one_of(name_of_file(command[i - 1]), kPrograms)) return i;
  }
  return static_cast<std::size_t>(std::ranges::find(command, "train") - command.begin());
}

std::string directory_asked(const CommandWords& command) {
  if (!starts_mpirun(command)) return {};
  const std::size_t end = program_of_mpirun(command);
  for (std::size_t i = 1; i + 1 < end; i += 1 + values_after(command[i])) {
    const std::string_view name = without_dashes(command[i]);
    if (name == "wdir" || name == "wd") return command[i + 1];
  }
  return {};
}

}  // namespace penstock::cli
