// SPDX-License-Identifier: Apache-2.0
// SIGUSR1 and SIGUSR2 ask a run something (to end, where it is). While the program is not yet the run that
// answers they wait: by default they would end it.
#pragma once

namespace penstock::cli {

// Of the calling thread, and of those that it starts and the programs that it becomes later.
void hold_user_signals();
void let_user_signals_through();

}  // namespace penstock::cli
