// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments. Names, kinds and constraints are those of megatron/training/arguments.py at commit
// 307dcf37 (megatron_options.inc).
#pragma once

#include <string>

#include "plan/trainers/settings.h"

namespace penstock::plan {

Settings megatron_settings(const Workload& workload, const Layout& layout);

// "--num-layers 80 \" and so on, a line each.
std::string print_megatron(const Settings& settings);

// Reads a command line's arguments, and asks plan's question of them: its model, workload and layout. Throws
// InputError that names the argument for one that is unknown (with the nearest), has no value or a wrong one,
// or contradicts another one.
void read_megatron(const std::string& arguments, PlanOptions& options);

}  // namespace penstock::plan
