// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/process.h"
#include "base/text.h"
#include "files/directory.h"

namespace penstock::cli {
namespace {

std::set<int> children() {
  std::set<int> found;
  for (const std::filesystem::path& entry : files::entries_of("/proc")) {
    const auto number = parse_integer(entry.filename().string());
    if (number && parent_of(static_cast<int>(*number)) == getpid()) found.insert(static_cast<int>(*number));
  }
  return found;
}

}  // namespace

std::set<int> adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  return children();
}

void end_orphans(std::set<int> others, Seconds grace) {
  const Seconds until = steady_seconds() + grace;
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

}  // namespace penstock::cli
