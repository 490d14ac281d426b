// SPDX-License-Identifier: Apache-2.0
// Replaces this process by another of Penstock's programs.
#pragma once

#include <string>

namespace penstock::cli {

// Path of a program in the same folder as this one.
std::string program_beside(const std::string& name);

// Replaces this process by that program, with the same command line; call before anything is printed. If the
// build's LibTorch is missing, the program uses python3's of the same version. Throws RunError if there is
// none, or if the program cannot be started.
[[noreturn]] void become(const std::string& path);

}  // namespace penstock::cli
