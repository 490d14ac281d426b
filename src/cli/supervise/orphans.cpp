// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "base/text.h"

namespace penstock::cli {
namespace {

bool is_child(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t name_end = text.rfind(')');  // the name may contain any characters
  if (name_end == std::string::npos) return false;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  int parent = 0;
  return rest >> state >> parent && parent == getpid();
}

std::set<int> children() {
  std::set<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto number = parse_integer(entry.path().filename().string());
    if (number && is_child(entry.path())) found.insert(static_cast<int>(*number));
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
