// SPDX-License-Identifier: Apache-2.0
#include "cli/train/stop_signals.h"

#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "cli/held_signals.h"
#include "train/flight/flight_recorder.h"

namespace penstock::cli {
namespace {

// A process group's signal reaches a run twice: by itself, and forwarded by its supervisor. A user who
// insists types Ctrl-C again sooner than a scheduler repeats SIGTERM.
constexpr Seconds kOneRequest = 2, kOneCtrlC = 0.4;

std::atomic<bool> stop_asked = false;
std::atomic<Seconds> urged_at = 0;  // of the first SIGTERM or SIGINT; 0: none
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<Seconds>::is_always_lock_free,
              "a signal handler may use nothing else");

extern "C" void ask_to_stop(int signal_number) {
  stop_asked = true;
  if (signal_number == SIGUSR1) return;
  const Seconds now = steady_seconds();  // a handler may call what this calls, clock_gettime
  Seconds before = 0;
  if (urged_at.compare_exchange_strong(before, now)) return;
  if (now - before >= (signal_number == SIGINT ? kOneCtrlC : kOneRequest)) _exit(128 + signal_number);
}

extern "C" void ask_where(int) { train::FlightRecorder::ask(); }

}  // namespace

StopSignals::StopSignals(const std::vector<int>& signals) {
  stop_asked = false;
  urged_at = 0;
  struct sigaction taken {};
  taken.sa_handler = ask_to_stop;
  taken.sa_flags = SA_RESTART;  // interrupted writes continue
  for (const int number : signals) sigaction(number, &taken, &before_[number]);
  taken.sa_handler = ask_where;
  sigaction(SIGUSR2, &taken, &before_[SIGUSR2]);
  signal(SIGPIPE, SIG_IGN);
  let_user_signals_through();
}

StopSignals::~StopSignals() {
  hold_user_signals();
  for (const auto& [number, action] : before_) sigaction(number, &action, nullptr);
}

bool StopSignals::asked() { return stop_asked; }

}  // namespace penstock::cli
