// SPDX-License-Identifier: Apache-2.0
// The plan question for a job file of torchtitan.
#pragma once

#include <string>
#include <vector>

#include "plan/trainers/beyond.h"

namespace penstock::plan {

// Fills model, workload and layout of `options` from the values of a job file; returns what `options` cannot
// express. Throws InputError that names file and key: like read_titan_job and find_titan_model, for degrees
// that do not fill the devices, and for what torchtitan itself refuses, in its words.
Beyond read_torchtitan(const std::vector<GivenValue>& values, const std::string& origin,
                       PlanOptions& options);

}  // namespace penstock::plan
