// SPDX-License-Identifier: Apache-2.0
// Failure messages: one line each on stderr, "penstock: " and the message.
#pragma once

#include <string>

namespace penstock::cli {

// Prints the first line of the text, in one write even when several ranks print: LibTorch's exceptions
// continue with a stack trace.
void tell(const std::string& text);

// All lines of a text, the first as tell() does.
void tell_lines(const std::string& text);

// For failures that every rank of a launcher finds before joining the others: the first rank prints, and the
// others wait for it, so that the launcher does not kill it first. Without a launcher the same as tell. MPI
// must not have been initialised.
void tell_once(const std::string& text);

}  // namespace penstock::cli
