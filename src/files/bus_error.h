// SPDX-License-Identifier: Apache-2.0
// Access to a mapping raises SIGBUS where the file has been truncated, or its disk cannot deliver the page.
#pragma once

#include <cstddef>
#include <string>

namespace penstock::files {

// After this a SIGBUS in a mapping of name_mapping() ends the process with this exit code, and standard error
// names the file. Any other SIGBUS has its earlier effect. For programs: a library must not end its process.
void explain_bus_errors(int exit_code);

// Thread-safe. Each mapping is forgotten before it is unmapped.
void name_mapping(const std::byte* begin, std::size_t size, const std::string& path);
void forget_mapping(const std::byte* begin);

}  // namespace penstock::files
