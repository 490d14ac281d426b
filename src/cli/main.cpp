// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  const int exit_code = penstock::cli::run(argc, argv);
#ifndef __SANITIZE_ADDRESS__  // which looks for leaks in exit()
  std::cout.flush();
  std::fflush(nullptr);
  _exit(exit_code);  // LibTorch's globals take 0.1 s to be destroyed, one operator at a time
#endif
  return exit_code;
}
