// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  const int exit_code = penstock::cli::run(argc, argv);
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer looks for leaks in exit()
  std::cout.flush();
  std::fflush(nullptr);
  _exit(exit_code);  // destroying LibTorch's globals, one operator at a time, takes 0.1 s
#endif
  return exit_code;
}
