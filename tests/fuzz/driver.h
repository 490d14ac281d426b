// SPDX-License-Identifier: Apache-2.0
// A small mutational fuzzer, deterministic for a given seed.
//
// To add a target: a fuzz_<name>.cpp whose main() calls fuzz_main(), a line in CMakeLists.txt, and a few
// small seeds under corpus/<name>/; ./dev fuzz --grow makes more of them. The input of a fixed defect stays
// there.
#pragma once

#include <string_view>

namespace penstock::fuzz {

// Must take any bytes. Throws InputError for input that it refuses, as it should unreadable input. Whatever
// else goes wrong (another exception, a sanitizer's report, more than ten seconds, and under the address
// sanitizer more bytes allocated at one time than four times the input and 64 MiB) is a defect.
using Target = void (*)(std::string_view input);

// fuzz_<name> CORPUS_DIRECTORY [--seconds N | --inputs N] [--seed N] [--save FILE] [--grow]
//
// Runs every file of the corpus, then mutations of them and of what the target accepted until N seconds
// (default 10) are over, or N inputs with those of the corpus are done. Prints one line and returns 0; on a
// defect writes the input to FILE (default fuzz-failure.bin), says what happened and returns 1, or leaves the
// process to the sanitizer. A corpus that cannot be read returns 2.
//
// --grow: keeps mutations that reach code, or repeat it as often, as none before (coverage.h), and writes the
// most telling of them to the corpus, named by their content: at most 64 files of at most 2 KiB each.
int fuzz_main(int argc, char** argv, Target target);

}  // namespace penstock::fuzz
