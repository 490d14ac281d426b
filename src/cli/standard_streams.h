// SPDX-License-Identifier: Apache-2.0
// Standard input, output and error as inherited from the parent process.
#pragma once

namespace penstock::cli {

// Opens an unusable descriptor in place of each closed standard stream: otherwise the next opened file would
// get its number, and printed text would go into that file.
void occupy_closed_streams();

// Throws RunError when earlier output did not reach standard output.
void require_printed();

}  // namespace penstock::cli
