// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error, as whoever started the program left them.
#pragma once

namespace penstock::cli {

// Puts a descriptor that cannot be written in the place of each standard stream that was closed: the next
// file opened would get its number otherwise, and what is printed would go into that file.
void occupy_closed_streams();

// Throws RunError when something printed so far did not arrive on standard output.
void require_printed();

}  // namespace penstock::cli
