// SPDX-License-Identifier: Apache-2.0
// Memory pages of the program's own files.
#pragma once

namespace penstock::train {

// Drops resident pages of code and constants of the program and its libraries: the start needs more of them
// than steps do. They stay in the system's page cache, and a page that is needed again returns by a page
// fault. Keeps writable mappings and those of which the process or a debugger has changed a page. A no-op if
// the system does not report mappings. Any thread.
void release_program_pages();

}  // namespace penstock::train
