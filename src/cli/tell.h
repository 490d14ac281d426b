// SPDX-License-Identifier: Apache-2.0
// Failures as people read them: one line each on stderr, "penstock: " and what went wrong.
#pragma once

#include <string>

namespace penstock::cli {

// The first line of the text, in one piece even when several ranks speak at once: what follows in exceptions
// of LibTorch is a stack trace.
void tell(const std::string& text);

// For what every rank of a launcher finds alike before it has joined the others: the first rank tells it, and
// the others wait until it has, so that the launcher ends nobody too early. Without a launcher the same as
// tell. MPI must not have been initialised.
void tell_once(const std::string& text);

}  // namespace penstock::cli
