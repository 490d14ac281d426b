// SPDX-License-Identifier: Apache-2.0
// Checks, when a command starts, the files that it will write at its end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

// How files of a kind begin.
inline constexpr std::string_view kPageBegins = "<!DOCTYPE html>", kPictureBegins = "<svg",
                                  kTraceBegins = R"({"traceEvents":)";

// Throws InputError naming the flag if no file can be written at the path, or if it has one of another kind,
// such as a corpus under a name mistyped: a file that is not empty and begins otherwise. Does nothing for an
// empty path.
void check_output(const std::string& flag, const std::string& path, std::string_view begins = "");

// The same, and also refuses an existing path.
void check_new_output(const std::string& flag, const std::string& path);

// An output file and the flag that names it.
struct Output {
  std::string flag, path;
};

// Throws InputError if an output is also an input, a file in a run directory that is an input, or another
// output. Ignores empty paths.
void check_apart(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);

}  // namespace penstock::cli
