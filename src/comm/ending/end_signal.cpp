// SPDX-License-Identifier: Apache-2.0
#include "comm/ending/end_signal.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace penstock::comm {
namespace {

std::atomic<bool> end_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use nothing else");

extern "C" void ask_to_end(int signal_number) {
  if (end_asked.exchange(true)) _exit(128 + signal_number);
}

}  // namespace

EndSignal::EndSignal() {
  end_asked = false;
  struct sigaction taken {};
  taken.sa_handler = ask_to_end;
  taken.sa_flags = SA_RESTART;  // interrupted writes continue
  sigaction(SIGTERM, &taken, &before_);
}

EndSignal::~EndSignal() { sigaction(SIGTERM, &before_, nullptr); }

bool EndSignal::received() const { return end_asked; }

std::optional<int> gone(const std::vector<LocalRank>& ranks) {
  const auto found = std::ranges::find_if(
      ranks, [](const LocalRank& rank) { return kill(rank.process, 0) != 0 && errno == ESRCH; });
  return found == ranks.end() ? std::nullopt : std::optional(found->rank);
}

}  // namespace penstock::comm
