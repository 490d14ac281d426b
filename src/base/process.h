// SPDX-License-Identifier: Apache-2.0
// What the system tells of processes.
#pragma once

namespace penstock {

// 0 if there is no such process, also where it ends meanwhile.
int parent_of(int process);

}  // namespace penstock
