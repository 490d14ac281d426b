// SPDX-License-Identifier: Apache-2.0
// Adds offload and reload copies: records leave the device after their forward and come back before their
// backward (docs/memory.md, "Offloading"; Yuan et al., USENIX ATC'24).
#pragma once

#include <functional>

#include "base/units.h"
#include "schedule/program.h"

namespace penstock::schedule {

// Bytes of a key's record that are offloaded; 0: the record stays.
using OffloadBytes = std::function<Bytes(const Key&)>;

// Records that are always on the device: the one being computed, the one being offloaded, and two being
// reloaded. A device with no more than these in flight offloads nothing.
inline constexpr int kResidentRecords = 4;

// Law: every offloaded record has one OFFLOAD right after its F and one RELOAD, which its B or I waits for.
// All other ops stay, and with an empty `bytes` the program is unchanged. On each device, counted in compute
// ops (LOSS and EMBED_GRAD included):
//
// - The second next F after the record's own, or the fourth next op if that comes first, waits for the
//   OFFLOAD. There the bytes are freed, however early the copy was done, so memory depends only on the
//   program.
// - RELOAD is issued just before the backward that precedes its own, but at most four ops before its own and
//   not before the OFFLOAD is done. It waits for the op before that place: a full F and B ahead in the steady
//   state, one B ahead in the cool-down. There the bytes are allocated.
// - A record stays if at most four ops are between its F and its B or I: the time is too short.
//
// So at most two records are being reloaded and at most two offloaded at any time. Weight records (I to W)
// stay. The program must be legal (check) and contain only compute ops and vocabulary messages.
Program add_offload(const Program& program, const OffloadBytes& bytes);

}  // namespace penstock::schedule
