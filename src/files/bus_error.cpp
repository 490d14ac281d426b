// SPDX-License-Identifier: Apache-2.0
#include "files/bus_error.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "base/text.h"

namespace penstock::files {
namespace {

// An element of a list that only grows, so that a signal handler can walk it. One that is not in use has no
// beginning, and is used again.
struct Mapping {
  std::atomic<const std::byte*> begin = nullptr;
  std::size_t size = 0;
  std::string path;
  Mapping* next = nullptr;
};

std::atomic<Mapping*> newest = nullptr;
std::mutex changing;
int exit_code_of_errors = 0;
struct sigaction before {};

Mapping* mapping_at(const std::byte* begin) {
  for (Mapping* mapping = newest; mapping != nullptr; mapping = mapping->next)
    if (mapping->begin == begin) return mapping;
  return nullptr;
}

void print(const char* text, std::size_t size) {
  if (write(STDERR_FILENO, text, size) < 0) return;  // nowhere left to say so
}

// Calls only what signal handlers may call.
extern "C" void explain(int, siginfo_t* info, void*) {
  if (info->si_code <= 0) {  // sent by a process: no access repeats
    sigaction(SIGBUS, &before, nullptr);
    raise(SIGBUS);
    return;
  }
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const Mapping* mapping = newest; mapping != nullptr; mapping = mapping->next) {
    const std::byte* begin = mapping->begin;
    if (begin == nullptr || at < begin || at >= begin + mapping->size) continue;
    constexpr const char* kWhy =
        ": cannot be read any further: it has become shorter meanwhile, or its disk does not deliver it\n";
    print("penstock: ", std::strlen("penstock: "));
    print(mapping->path.data(), mapping->path.size());
    print(kWhy, std::strlen(kWhy));
    _exit(exit_code_of_errors);
  }
  sigaction(SIGBUS, &before, nullptr);  // the access is repeated
}

}  // namespace

void explain_bus_errors(int exit_code) {
  exit_code_of_errors = exit_code;
  struct sigaction action {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before);
}

void name_mapping(const std::byte* begin, std::size_t size, const std::string& path) {
  const std::lock_guard lock(changing);
  Mapping* mapping = mapping_at(nullptr);
  const bool is_new = mapping == nullptr;
  if (is_new) mapping = new Mapping{.next = newest};
  mapping->size = size;
  mapping->path = printable(path, 500);
  mapping->begin = begin;
  if (is_new) newest = mapping;
}

void forget_mapping(const std::byte* begin) {
  const std::lock_guard lock(changing);
  if (Mapping* mapping = mapping_at(begin)) mapping->begin = nullptr;
}

}  // namespace penstock::files
