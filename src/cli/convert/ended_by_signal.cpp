// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/ended_by_signal.h"

#include <signal.h>

#include <array>
#include <map>
#include <utility>

#include "base/interruption.h"

namespace penstock::cli {
namespace {

constexpr std::array kEnding{SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t received = 0;

struct Ended {};  // no std::exception, which the work may catch

extern "C" void note_signal(int number) { received = number; }

void end_if_received() {
  if (received != 0) throw Ended{};
}

class Noted {
 public:
  Noted() : question_(std::exchange(interruption_question, end_if_received)) {
    received = 0;
    struct sigaction noted {};
    noted.sa_handler = note_signal;
    noted.sa_flags = SA_RESTART;
    for (const int number : kEnding) {
      sigaction(number, nullptr, &before_[number]);
      if (before_[number].sa_handler != SIG_IGN) sigaction(number, &noted, nullptr);  // as nohup's SIGHUP
    }
  }
  ~Noted() {
    interruption_question = question_;
    for (const auto& [number, action] : before_) sigaction(number, &action, nullptr);
  }
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;

 private:
  InterruptionQuestion question_;
  std::map<int, struct sigaction> before_;
};

}  // namespace

void ended_by_signals(const std::function<void()>& work) {
  try {
    const Noted noted;
    work();
    return;
  } catch (const Ended&) {
  }
  raise(received);  // whose action is the earlier one again
}

}  // namespace penstock::cli
