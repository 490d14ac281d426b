// SPDX-License-Identifier: Apache-2.0
// Another program of Penstock's in place of this one.
#pragma once

#include <string>

namespace penstock::cli {

// The path of a program in the folder of this one.
std::string program_beside(const std::string& name);

// The process becomes that program, which begins again with the same words; nothing may have been printed.
// Where the build's LibTorch is gone, it is python3's of the same version. Throws RunError if there is none,
// or if the program cannot be started.
[[noreturn]] void become(const std::string& path);

}  // namespace penstock::cli
