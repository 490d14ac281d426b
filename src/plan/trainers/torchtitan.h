// SPDX-License-Identifier: Apache-2.0
// torchtitan's job files (TOML). Keys and their values are those of torchtitan/config/job_config.py of
// torchtitan 0.2.2 on PyPI.
#pragma once

#include <string>

#include "plan/trainers/beyond.h"
#include "plan/trainers/settings.h"

namespace penstock::plan {

// Names are "section.key".
Settings torchtitan_settings(const Workload& workload, const Layout& layout);
std::string print_torchtitan(const Settings& settings);

// Why torchtitan cannot run the model so, or why that is not predicted; beyond refusal_of.
std::optional<std::string> torchtitan_refusal(const Workload& workload, const Layout& layout);

// Asks plan's question of a job file; returns what its options cannot say. Throws InputError that names file
// and key: as read_titan_job and find_titan_model, degrees that do not fill the devices, and what torchtitan
// itself refuses, in its words.
Beyond read_torchtitan(const std::string& text, const std::string& origin, PlanOptions& options);

}  // namespace penstock::plan
