// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/signals.h"

#include <atomic>

namespace penstock::cli {
namespace {

constexpr std::array kPassedOn{SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};

std::atomic<int> command_process = 0;
std::atomic<bool> end_is_asked = false;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

extern "C" void pass_on(int signal_number, siginfo_t* signal, void*) {
  if (signal_number != SIGUSR2) end_is_asked = true;
  if (signal->si_code == SI_KERNEL) return;  // Ctrl-C: the terminal signals the command too
  // A command need not know SIGHUP, and would end without a checkpoint.
  const int passed = signal_number == SIGHUP ? SIGTERM : signal_number;
  if (const int process = command_process; process > 0) kill(process, passed);
}

const sigset_t& passed_on() {
  static const sigset_t all = [] {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : kPassedOn) sigaddset(&set, number);
    return set;
  }();
  return all;
}

bool ignores_hangups() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

PassingOn::PassingOn() {
  static_assert(kPassedOn.size() == std::tuple_size_v<decltype(before_)>);
  struct sigaction taken {};
  taken.sa_sigaction = pass_on;
  taken.sa_flags = SA_SIGINFO;  // no SA_RESTART: a signal ends a pause
  const bool ignored = ignores_hangups();
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) {
    const bool takes = kPassedOn[i] != SIGHUP || !ignored;
    sigaction(kPassedOn[i], takes ? &taken : nullptr, &before_[i]);
  }
  sigprocmask(SIG_UNBLOCK, &passed_on(), &mask_before_);  // those held since the program began arrive now
}

PassingOn::~PassingOn() {
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  for (std::size_t i = 0; i < kPassedOn.size(); ++i) sigaction(kPassedOn[i], &before_[i], nullptr);
  end_is_asked = false;
}

bool asked_to_end() { return end_is_asked; }

HoldingBack::HoldingBack() { sigprocmask(SIG_BLOCK, &passed_on(), &mask_before_); }
HoldingBack::~HoldingBack() { sigprocmask(SIG_SETMASK, &mask_before_, nullptr); }

void pass_on_to(int process) { command_process = process; }

void forget_signals() {
  for (const int number : kPassedOn) {
    if (number != SIGHUP || !ignores_hangups()) signal(number, SIG_DFL);
  }
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &passed_on(), nullptr);
}

}  // namespace penstock::cli
