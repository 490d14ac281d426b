// SPDX-License-Identifier: Apache-2.0
// Pages of the program's own files.
#pragma once

namespace penstock::train {

// Lets go of resident pages of the program and its libraries: code and constants, of which the start has
// needed more than steps do. They stay in the system's page cache, and what is needed again comes back with a
// fault. Mappings that are writable, or of which the process or a debugger has changed a page, stay. Where
// the system tells nothing of them nothing happens. Any thread.
void release_program_pages();

}  // namespace penstock::train
