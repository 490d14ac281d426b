// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's arguments. Names, kinds and constraints are from megatron/training/arguments.py at commit
// 307dcf37 (megatron_options.inc); megatron_effects.inc lists arguments that change time or memory and are
// not predicted.
#pragma once

#include <string>

#include "plan/trainers/beyond.h"
#include "plan/trainers/megatron_arguments.h"
#include "plan/trainers/settings.h"

namespace penstock::plan {

Settings megatron_settings(const Workload& workload, const Layout& layout);

// "--num-layers 80 \" and so on, one per line.
std::string print_megatron(const Settings& settings);

// Fills model, workload and layout of `options` from command-line arguments; returns what `options` cannot
// express. Throws InputError for an argument that is missing, is out of its range, contradicts another one,
// or has a value that is not predicted, with its name.
Beyond read_megatron(const MegatronArguments& given, PlanOptions& options);

}  // namespace penstock::plan
