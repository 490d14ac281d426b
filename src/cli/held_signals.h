// SPDX-License-Identifier: Apache-2.0
// SIGUSR1 asks a run to end, SIGUSR2 where it is. Until the run handles them they are held, since by default
// they would kill the process.
#pragma once

namespace penstock::cli {

// Apply to the calling thread, threads that it starts later, and programs that replace it.
void hold_user_signals();
void let_user_signals_through();

}  // namespace penstock::cli
