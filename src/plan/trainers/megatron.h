// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments. Names, kinds and constraints are those of megatron/training/arguments.py at commit
// 307dcf37 (megatron_options.inc); those that change time or memory and are not predicted are in
// megatron_effects.inc.
#pragma once

#include <string>

#include "plan/trainers/beyond.h"
#include "plan/trainers/settings.h"

namespace penstock::plan {

Settings megatron_settings(const Workload& workload, const Layout& layout);

// "--num-layers 80 \" and so on, a line each.
std::string print_megatron(const Settings& settings);

// Asks plan's question of a command line's arguments: its model, workload and layout; returns what its
// options cannot say. Throws InputError as MegatronArguments, and by its name for one that is missing,
// contradicts another one, or has a value that is not predicted.
Beyond read_megatron(const std::string& arguments, PlanOptions& options);

}  // namespace penstock::plan
