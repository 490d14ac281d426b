// SPDX-License-Identifier: Apache-2.0
#include "cli/held_signals.h"

#include <signal.h>

namespace penstock::cli {
namespace {

void mask_user_signals(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  pthread_sigmask(how, &signals, nullptr);
}

}  // namespace

void hold_user_signals() { mask_user_signals(SIG_BLOCK); }

void let_user_signals_through() { mask_user_signals(SIG_UNBLOCK); }

}  // namespace penstock::cli
