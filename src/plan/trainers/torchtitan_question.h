// SPDX-License-Identifier: Apache-2.0
// The question that a job file of torchtitan asks.
#pragma once

#include <string>

#include "plan/trainers/beyond.h"

namespace penstock::plan {

// Asks plan's question of a job file; returns what its options cannot say. Throws InputError that names file
// and key: as read_titan_job and find_titan_model, degrees that do not fill the devices, and what torchtitan
// itself refuses, in its words.
Beyond read_torchtitan(const std::string& text, const std::string& origin, PlanOptions& options);

}  // namespace penstock::plan
