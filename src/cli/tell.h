// SPDX-License-Identifier: Apache-2.0
// Failure messages: one line each on stderr, "penstock: " and the message. Remarks: "penstock: note: " and
// the remark. What a terminal would obey, as names of files may hold, is printed as printable_lines() does.
#pragma once

#include <string>
#include <string_view>

namespace penstock::cli {

// Prints the first line of the text, in one write even when several ranks print: LibTorch's exceptions
// continue with a stack trace.
void tell(const std::string& text);

// Prints a remark of a run that goes on, in a form that supervise does not take for the reason of a failure.
void tell_remark(const std::string& text);
inline constexpr std::string_view kRemark = "note: ";

// The same for a remark of several lines.
void tell_remarks(const std::string& text);

// For failures that every rank of a launcher finds before it joins the others: rank 0 prints, and the others
// wait for it, so that the launcher does not kill it first. Same as tell() without a launcher. MPI must not
// be initialised yet.
void tell_once(const std::string& text);

}  // namespace penstock::cli
