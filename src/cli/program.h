// SPDX-License-Identifier: Apache-2.0
// The program: its commands, and failures turned into one line of text and an exit code.
#pragma once

namespace penstock::cli {

// Parses the command line and runs the command. Returns the exit code (base/error.h). Errors go to stderr,
// starting with one line. Never throws.
int run(int argc, char** argv);

const char* version();  // "0.1.0"

}  // namespace penstock::cli
