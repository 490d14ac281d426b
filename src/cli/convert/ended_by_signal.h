// SPDX-License-Identifier: Apache-2.0
// Work that a signal ends without leaving unfinished files.
#pragma once

#include <functional>

namespace penstock::cli {

// Runs work(). After a SIGINT, SIGTERM or SIGHUP the thread's next allow_interruption() unwinds it, which
// removes its temporary files; the process then ends by that signal. One call at a time in a process.
void ended_by_signals(const std::function<void()>& work);

}  // namespace penstock::cli
