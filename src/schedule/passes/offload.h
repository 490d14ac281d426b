// SPDX-License-Identifier: Apache-2.0
// Adds the copies of offloading: records leave the device after their forward and come back before their
// backward (docs/memory.md, "Offloading"; Yuan et al., USENIX ATC'24).
#pragma once

#include <functional>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Bytes of a record that leave; 0: it stays.
using OffloadBytes = std::function<Bytes(const Key&)>;

// Records that are on the device in any case: the one being computed, the one being stored, and the two that
// come back. A device with no more in flight keeps its list.
inline constexpr int kResidentRecords = 4;

// Law: every record that leaves has one OFFLOAD, right after its F, and one RELOAD, which its B or I waits
// for; all else stays, and without bytes the program is unchanged. Per device, in its compute ops, visits of
// the vocabulary among them:
//
// - A record has left before the second next F begins, or the fourth next action if that comes first: that
//   action waits for the OFFLOAD. This is where its bytes are freed, however early the copy was done, so
//   memory depends on the program alone.
// - RELOAD is issued just before the backward that precedes its own, but at most four actions before its own
//   and not before it has left, and waits for the action before that place: in the steady state a full F and
//   B ahead, in the cool-down one B. This is where its bytes are taken.
// - A record stays when at most four actions stand between its F and its B or I: there is no time to leave.
//
// So at most two records are coming back and at most two are leaving at any time. Weight records (I to W)
// stay. The program must be legal (check) and hold compute ops, and messages of the vocabulary, only.
Program add_offload(const Program& program, const OffloadBytes& bytes);

}  // namespace penstock::schedule
