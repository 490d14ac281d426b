// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error as inherited from the parent process.
#pragma once

namespace penstock::cli {

// Opens an unusable descriptor in place of each closed standard stream. Otherwise the next opened file would
// get its number, and printed text would go into that file.
void occupy_closed_streams();

// Throws RunError with this text if earlier output did not reach standard output. The command's work is done
// by then.
inline constexpr const char* kUnprinted =
    "standard output cannot be written; is it closed, or its disk full?";
void require_printed();

}  // namespace penstock::cli
