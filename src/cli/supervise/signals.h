// SPDX-License-Identifier: Apache-2.0
// Signals that reach the supervisor. SIGTERM, SIGINT, SIGUSR1 and, unless it was ignored as under nohup,
// SIGHUP ask it to end; they and SIGUSR2 are passed on to the command that it runs, SIGHUP as SIGTERM.
#pragma once

#include <signal.h>

#include <array>

namespace penstock::cli {

// Takes these signals while it exists, also between commands. Only one may exist at a time.
class PassingOn {
 public:
  PassingOn();
  ~PassingOn();
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

 private:
  sigset_t mask_before_{};
  std::array<struct sigaction, 5> before_{};
};

// Whether the PassingOn that exists has been asked to end; false without one.
bool asked_to_end();

// Holds these signals back while it exists, so that none is lost between a look at asked_to_end() and
// pass_on_to().
class HoldingBack {
 public:
  HoldingBack();
  ~HoldingBack();
  HoldingBack(const HoldingBack&) = delete;
  HoldingBack& operator=(const HoldingBack&) = delete;

 private:
  sigset_t mask_before_{};
};

// Passes signals on to this process from now on; 0: to none.
void pass_on_to(int process);

// Call in a new process, before it executes a command.
void forget_signals();

}  // namespace penstock::cli
