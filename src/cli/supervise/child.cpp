// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/supervise/complaint.h"
#include "cli/supervise/orphans.h"
#include "cli/supervise/signals.h"

namespace penstock::cli {
namespace {

constexpr Seconds kFarewell = 5;  // for processes that the command leaves behind
constexpr Seconds kEnding = 10;   // after a rank fails: a launcher cut off from a host may not end
constexpr int kLook = 200;        // ms between checks whether the command has ended
void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // no reader
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Ends a command that should have ended by itself: SIGTERM, later SIGKILL.
class LateChild {
 public:
  explicit LateChild(int child) : child_(child) {}
  void look(Seconds failed_at) {
    if (failed_at == 0) return;
    const Seconds late = steady_seconds() - failed_at - kEnding;
    if (late > 0 && !asked_) kill(child_, SIGTERM);
    asked_ = late > 0;
    if (late > kFarewell) kill(child_, SIGKILL);
  }

 private:
  int child_;
  bool asked_ = false;
};

// Makes only async-signal-safe calls. Writes errno to `failure`, which closes when the command starts.
[[noreturn]] void become(const std::vector<char*>& words, int err, int failure) {
  dup2(err, STDERR_FILENO);
  execvp(words.front(), words.data());
  const int number = errno;
  [[maybe_unused]] const ssize_t written = write(failure, &number, sizeof number);
  _exit(127);
}

// Uses a separate process group, so that processes that it starts can be ended with it.
[[noreturn]] void become_silent(const std::vector<char*>& words) {
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  execvp(words.front(), words.data());
  _exit(127);
}

// Ends a command started by become_silent(), with all processes that it started.
void end_silent(int child) {
  setpgid(child, child);  // the child may not have done so yet
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
}

std::vector<char*> arguments_of(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

std::vector<int> start_silent(const std::vector<std::vector<std::string>>& commands) {
  std::vector<int> running;
  for (const std::vector<std::string>& words : commands) {
    const std::vector<char*> arguments = arguments_of(words);
    const int child = fork();
    if (child == 0) become_silent(arguments);
    if (child < 0) {
      const int reason = errno;
      for (const int begun : running) end_silent(begun);
      throw RunError(std::string("no process: ") + std::strerror(reason));
    }
    running.push_back(child);
  }
  return running;
}

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw RunError(std::string("no pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  void close_writing() {
    close(ends[1]);
    ends[1] = -1;
  }
  std::array<int, 2> ends{};
};

ssize_t read_some(int file, void* to, std::size_t room) {
  ssize_t count = 0;
  do {
    count = read(file, to, room);
  } while (count < 0 && errno == EINTR);
  return count;
}

// Shells and launchers exit with 128 + the number of a signal that ended their command. Not every code above
// 128 is such a one: mpirun exits with 205 when it loses a host.
int signal_of(int status) {
  constexpr int kMostSignals = 31;
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  const int number = WEXITSTATUS(status) - 128;
  return number >= 1 && number <= kMostSignals ? number : 0;
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Copies to stderr until the child has ended and the pipe is closed or silent. Returns its status.
int copy_complaints(int from, int child, Complaints& complaints) {
  int status = 0;
  bool ended = false, open = true;
  LateChild late(child);
  std::array<char, 4096> buffer{};
  while (open || !ended) {
    pollfd ready{.fd = open ? from : -1, .events = POLLIN, .revents = 0};
    const int found = poll(&ready, 1, kLook);  // below 0: interrupted by a signal
    if (found > 0) {
      const ssize_t count = read_some(from, buffer.data(), buffer.size());
      const std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      write_all(STDERR_FILENO, text);
      complaints.read(text);
      open = count > 0;
    }
    if (!ended && waitpid(child, &status, WNOHANG) == child) {
      pass_on_to(0);  // its number may be another process's soon
      ended = true;
    }
    if (!ended) late.look(complaints.failed_at());
    if (ended && found == 0) break;  // other holders of the pipe are silent
  }
  return status;
}

}  // namespace

std::optional<ChildEnd> run_child(const std::vector<std::string>& words) {
  const std::vector<char*> arguments = arguments_of(words);
  if (isatty(STDERR_FILENO) == 1) setenv("PENSTOCK_PROGRESS", "live", 0);  // the pipe hides the terminal
  Pipe err, failure;
  const std::set<int> others = adopt_orphans();
  int child = 0;
  {
    const HoldingBack held;
    if (asked_to_end()) return {};
    child = fork();
    if (child < 0) throw RunError(std::string("no process: ") + std::strerror(errno));
    if (child == 0) {
      forget_signals();
      become(arguments, err.ends[1], failure.ends[1]);
    }
    pass_on_to(child);
  }
  err.close_writing();
  failure.close_writing();
  Complaints complaints;
  const int status = copy_complaints(err.ends[0], child, complaints);
  pass_on_to(0);
  end_orphans(others, kFarewell);
  int number = 0;
  if (read_some(failure.ends[0], &number, sizeof number) == sizeof number)
    throw InputError("\"" + printable(words.front()) + "\" cannot be started: " + std::strerror(number));
  return ChildEnd{
      .exit_code = exit_code_of(status), .signal = signal_of(status), .complaint = complaints.reason()};
}

std::vector<bool> which_succeed(const std::vector<std::vector<std::string>>& commands, double seconds) {
  const std::set<int> others = adopt_orphans();
  const std::vector<int> running = start_silent(commands);
  std::vector<bool> good(commands.size(), false);
  Seconds farewell = kFarewell;
  const double until = steady_seconds() + seconds;
  const auto may_wait = [&] { return steady_seconds() < until && !asked_to_end(); };
  for (std::size_t i = 0; i < running.size(); ++i) {
    int status = 0, ended = 0;
    while ((ended = waitpid(running[i], &status, WNOHANG)) == 0 && may_wait()) usleep(20'000);
    good[i] = ended == running[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended != 0) continue;
    end_silent(running[i]);
    farewell = 0;
  }
  end_orphans(others, farewell);  // mpirun's ssh is in a process group of its own
  return good;
}

bool pause_for(double seconds) {
  const double until = steady_seconds() + seconds;
  while (!asked_to_end() && steady_seconds() < until) usleep(20'000);
  return !asked_to_end();
}

}  // namespace penstock::cli
