// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <iostream>

#include "base/error.h"

namespace penstock::cli {

void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // open() takes the lowest free number, this one. The wrong direction makes any use of the stream fail.
    const int taken = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    PENSTOCK_CHECK(taken == stream || taken < 0, "files get the lowest free number");
  }
}

void require_printed() {
  std::cout.flush();
  if (!std::cout) throw RunError(kUnprinted);
}

}  // namespace penstock::cli
