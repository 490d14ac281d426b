// SPDX-License-Identifier: Apache-2.0
#include "files/bus_error.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "files/mapped_file.h"
#include "scratch.h"

namespace penstock::files {
namespace {

constexpr std::size_t kSize = 1 << 20;

// Reads the last byte of a file that has been cut short since it was mapped.
void read_beyond_the_end(const std::string& path) {
  const MappedFile file(path);
  std::filesystem::resize_file(path, 10);
  [[maybe_unused]] const volatile std::byte last = file.bytes().back();
}

TEST(BusErrorDeathTest, NamesTheFileThatBecameShorter) {
  const Scratch scratch;
  scratch.write("earlier", std::string(kSize, 'a'));
  scratch.write("cut", std::string(kSize, 'a'));
  { const MappedFile forgotten(scratch / "earlier"); }
  EXPECT_EXIT(
      {
        explain_bus_errors(3);
        read_beyond_the_end(scratch / "cut");
      },
      testing::ExitedWithCode(3), "penstock: .*/cut: cannot be read any further: it has become shorter");
}

TEST(BusErrorDeathTest, SentByAProcessEndsThisOne) {
  const Scratch scratch;
  scratch.write("whole", std::string(kSize, 'a'));
  EXPECT_EXIT(
      {
        signal(SIGBUS, SIG_DFL);  // the address sanitizer has one of its own
        explain_bus_errors(3);
        const MappedFile file(scratch / "whole");
        kill(getpid(), SIGBUS);
        pause();
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace penstock::files
