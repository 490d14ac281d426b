// SPDX-License-Identifier: Apache-2.0
// Runs programs as a shell would, with a limit of time, and tells how they ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/units.h"
#include "processes.h"
#include "scratch.h"

namespace penstock::testing {

using Arguments = std::vector<std::string>;

inline const std::string kSource = PENSTOCK_SOURCE_DIR;

inline Arguments with(Arguments first, const Arguments& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// How a program ended; 128 + the signal when by one, -1 when it had to be ended because its time was up.
struct Ending {
  int exit_code = -1;
  Seconds seconds = 0;
  std::string out, err;

  // The program's own lines on stderr; mpirun has a say of its own there.
  std::vector<std::string> complaints() const {
    std::vector<std::string> found;
    for (const std::string& line : lines_of(err)) {
      if (line.starts_with("penstock: ")) found.push_back(line.substr(10));
    }
    return found;
  }
};

// A program under way, in a process group of its own.
class RunningProgram {
 public:
  explicit RunningProgram(const Arguments& arguments) : began_(seconds_now()) {
    std::vector<char*> words;
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, (output_ / "out").c_str(), O_WRONLY | O_CREAT, 0666);
    posix_spawn_file_actions_addopen(&files, 2, (output_ / "err").c_str(), O_WRONLY | O_CREAT, 0666);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (posix_spawnp(&process_, words[0], &files, &attributes, words.data(), environ) != 0) process_ = -1;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  ~RunningProgram() {
    if (process_ > 0) end();
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  int process() const { return process_; }

  Ending wait(Seconds limit) {
    int status = 0;
    Ending ending;
    const Seconds until = seconds_now() + limit * kSlowness;
    while (process_ > 0 && waitpid(process_, &status, WNOHANG) == 0) {
      if (seconds_now() > until) {
        end();
        break;
      }
      sleep_a_little();
    }
    if (process_ > 0) ending.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    process_ = -1;
    ending.seconds = seconds_now() - began_;
    ending.out = output_.read("out");
    ending.err = output_.read("err");
    return ending;
  }

 private:
  void end() {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  Scratch output_;
  Seconds began_;
  pid_t process_ = -1;
};

inline Ending run_program(const Arguments& arguments, Seconds limit = 120) {
  return RunningProgram(arguments).wait(limit);
}

// Penstock itself, with these arguments.
inline Ending program(Arguments arguments) {
  arguments.insert(arguments.begin(), PENSTOCK_PROGRAM);
  return run_program(arguments);
}

inline std::vector<int> children_of(int process) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string name, state;
    int child = 0, parent = 0;
    if (file >> child >> name >> state >> parent && parent == process) found.push_back(child);
  }
  return found;
}

// The rank that mpirun gave to the process; -1 when it is no rank.
inline int rank_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  const std::string key = "OMPI_COMM_WORLD_RANK=";
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(key)) return std::stoi(entry.substr(key.size()));
  }
  return -1;
}

// The processes that mpirun has started as ranks, by rank.
inline std::vector<int> ranks_of(int mpirun) {
  std::vector<int> ranks = children_of(mpirun);
  std::erase_if(ranks, [](int process) { return rank_of(process) < 0; });
  std::ranges::sort(ranks, {}, rank_of);
  return ranks;
}

// The command that starts penstock with so many ranks, as processes of mpirun or as threads of one.
inline Arguments with_mpirun(int ranks, Arguments arguments) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 0);  // Open MPI's own leaks would change the exit code
  Arguments all{"mpirun", "--oversubscribe",     "--bind-to",     "none",
                "-np",    std::to_string(ranks), PENSTOCK_PROGRAM};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// From now on the process can write no byte to a file.
inline void fill_disk_of(int process) {
  const rlimit nothing{0, 0};
  ASSERT_EQ(prlimit(process, RLIMIT_FSIZE, &nothing, nullptr), 0);
}

inline Arguments with_threads(int ranks, Arguments arguments) {
  arguments.insert(arguments.begin(), PENSTOCK_PROGRAM);
  if (ranks > 1) arguments.insert(arguments.end(), {"--ranks", std::to_string(ranks)});
  return arguments;
}

// The words for a profile of figures taken once: quick to make, and kept like any profile.
inline Arguments hasty_profile(Arguments options) {
  options.insert(options.begin(), {"profile", "--quick", "--budget", "0"});
  return options;
}

// What must be equal: each step's numbers that are no times and no sizes, and the weights.
struct Left {
  std::vector<std::string> steps;
  std::string weights;
};

inline Left left_in(const Scratch& scratch, const std::string& directory) {
  Left left{.weights = scratch.read(directory + "/weights.safetensors")};
  for (const std::string& line : lines_of(scratch.read(directory + "/metrics.jsonl"))) {
    const auto step = nlohmann::json::parse(line);
    std::string numbers;
    for (const char* key : {"step", "loss", "grad_norm", "lr", "tokens"})
      numbers += step.at(key).dump() + " ";
    left.steps.push_back(numbers + step.value("evaluation_loss", nlohmann::json()).dump());
  }
  return left;
}

// A small legal run file for text in the same directory, which is written too.
inline std::string small_run_file(const Scratch& scratch) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i * i) + " of a text\n";
  scratch.write("corpus.txt", text);
  return R"([model]
layers = 4
hidden = 16
ffn = 24
heads = 4
kv_heads = 2
[data]
text = ")" +
         scratch / "corpus.txt" + R"("
seq_len = 30
validation_fraction = 0.1
[parallel]
pp = 2
[schedule]
name = "slimpipe"
slices = 4
[train]
steps = 5
batch = 4
threads = 1
evaluate_sequences = 4
[output]
dir = ")" +
         scratch / "run" + "\"\n";
}

}  // namespace penstock::testing
