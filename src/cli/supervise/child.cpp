// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/supervise/complaint.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kOwnWord = "penstock: ";
constexpr std::size_t kLongestComplaint = 4096;
constexpr Seconds kFarewell = 5;  // for processes that the command leaves behind
constexpr Seconds kEnding = 10;   // after a rank fails: a launcher cut off from a host may not end
constexpr int kLook = 200;        // ms between checks whether the command has ended
constexpr std::array kPassedOn{SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

std::atomic<int> child_process = 0;
std::atomic<bool> asked_to_end = false;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

extern "C" void pass_on(int signal_number, siginfo_t* signal, void*) {
  if (signal_number != SIGUSR2) asked_to_end = true;
  if (signal->si_code == SI_KERNEL) return;  // Ctrl-C: the terminal signals the command too
  if (const int child = child_process; child > 0) kill(child, signal_number);
}

// Forwards signals. Holds them until begin(), so that none is lost before the command exists.
class PassingOn {
 public:
  PassingOn() {
    sigprocmask(SIG_BLOCK, &signals(), &mask_before_);
    struct sigaction taken {};
    taken.sa_sigaction = pass_on;
    taken.sa_flags = SA_SIGINFO;  // no SA_RESTART: a signal ends a pause
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &taken, &before_[i]);
  }
  ~PassingOn() {
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
  }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

  void begin() const { sigprocmask(SIG_UNBLOCK, &signals(), nullptr); }
  // Call in the new process, before it executes the command.
  void forget() const {
    for (const int number : kPassedOn) signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    begin();
  }

 private:
  static const sigset_t& signals() {
    static const sigset_t all = [] {
      sigset_t set;
      sigemptyset(&set);
      for (const int number : kPassedOn) sigaddset(&set, number);
      return set;
    }();
    return all;
  }

  sigset_t mask_before_{};
  std::array<struct sigaction, kPassedOn.size()> before_{};
};

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // no reader
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Finds complaints in text that arrives piece by piece.
class Complaints {
 public:
  void read(std::string_view text) {
    line_ += text;
    for (std::size_t end; (end = line_.find_first_of("\r\n")) != std::string::npos;) {
      if (line_.starts_with(kOwnWord))
        note(line_.substr(kOwnWord.size(), std::min(end - kOwnWord.size(), kLongestComplaint)));
      line_.erase(0, end + 1);
    }
    if (line_.size() > kOwnWord.size() && !line_.starts_with(kOwnWord)) line_.resize(kOwnWord.size());
  }
  // The first complaint of any rank; otherwise the last one, since a successful run has remarks too.
  const std::string& reason() const { return of_rank_.empty() ? last_ : of_rank_; }
  // Time of the first failure that a rank reported, after which the command ends by itself; 0: none.
  Seconds failed_at() const { return failed_at_; }

 private:
  void note(const std::string& complaint) {
    last_ = complaint;
    if (failed_at_ != 0 || !failure_of_rank(complaint)) return;
    of_rank_ = complaint;
    failed_at_ = steady_seconds();
  }

  std::string line_, last_, of_rank_;
  Seconds failed_at_ = 0;
};

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

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

bool is_child(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');  // the name may contain any characters
  if (name_end == std::string::npos) return false;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  int parent = 0;
  return rest >> state >> parent && parent == getpid();
}

// Children of this process, including ones that it did not start: those from before exec(), and orphans if it
// is process 1 of a container.
std::set<int> children() {
  std::set<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto number = parse_integer(entry.path().filename().string());
    if (number && is_child(entry.path())) found.insert(static_cast<int>(*number));
  }
  return found;
}

// Processes that the command leaves running become children of this process. Gives them a few seconds to end,
// then kills them, so that none holds files of the next attempt. `others`: children from before the command.
void end_orphans(std::set<int> others) {
  const Seconds until = steady_seconds() + kFarewell;
  for (;; usleep(20'000)) {
    int process = 0;
    while ((process = waitpid(-1, nullptr, WNOHANG)) > 0) others.erase(process);
    if (process == -1) return;
    const bool late = steady_seconds() >= until;
    if (others.empty() && !late) continue;
    std::set<int> left = children();
    std::erase_if(left, [&](int child) { return others.contains(child); });
    if (left.empty()) return;
    for (const int orphan : left) {
      if (late) kill(orphan, SIGKILL);
    }
  }
}

// Copies to stderr until the child has ended and the pipe is closed or silent. Returns its exit code.
int copy_complaints(int from, int child, Complaints& complaints) {
  int status = 0;
  bool ended = false, open = true;
  LateChild late(child);
  std::array<char, 4096> buffer{};
  while (open || !ended) {
    pollfd ready{.fd = open ? from : -1, .events = POLLIN, .revents = 0};
    const bool comes = poll(&ready, 1, kLook) > 0;
    if (comes) {
      const ssize_t count = read_some(from, buffer.data(), buffer.size());
      const std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
      write_all(STDERR_FILENO, text);
      complaints.read(text);
      open = count > 0;
    }
    if (!ended) ended = waitpid(child, &status, WNOHANG) == child;
    if (!ended) late.look(complaints.failed_at());
    if (ended && !comes) break;  // other holders of the pipe are silent
  }
  return exit_code_of(status);
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& words) {
  const std::vector<char*> arguments = arguments_of(words);
  if (isatty(STDERR_FILENO) == 1) setenv("PENSTOCK_PROGRESS", "live", 0);  // the pipe hides the terminal
  Pipe err, failure;
  const PassingOn passing;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::set<int> others = children();
  const int child = fork();
  if (child < 0) throw RunError(std::string("no process: ") + std::strerror(errno));
  if (child == 0) {
    passing.forget();
    become(arguments, err.ends[1], failure.ends[1]);
  }
  child_process = child;
  passing.begin();
  err.close_writing();
  failure.close_writing();
  Complaints complaints;
  const int exit_code = copy_complaints(err.ends[0], child, complaints);
  child_process = 0;
  end_orphans(others);
  int number = 0;
  if (read_some(failure.ends[0], &number, sizeof number) == sizeof number)
    throw InputError("\"" + printable(words.front()) + "\" cannot be started: " + std::strerror(number));
  return {.exit_code = exit_code, .complaint = complaints.reason(), .stopped = asked_to_end};
}

std::vector<bool> which_succeed(const std::vector<std::vector<std::string>>& commands, double seconds) {
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
  std::vector<bool> good(commands.size(), false);
  const double until = steady_seconds() + seconds;
  for (std::size_t i = 0; i < running.size(); ++i) {
    int status = 0, ended = 0;
    while ((ended = waitpid(running[i], &status, WNOHANG)) == 0 && steady_seconds() < until) usleep(20'000);
    good[i] = ended == running[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended == 0) end_silent(running[i]);
  }
  return good;
}

bool pause_for(double seconds) {
  const PassingOn passing;
  passing.begin();
  const double until = steady_seconds() + seconds;
  while (!asked_to_end && steady_seconds() < until) usleep(20'000);
  return !asked_to_end;
}

}  // namespace penstock::cli
