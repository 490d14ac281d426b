// SPDX-License-Identifier: Apache-2.0
// Rows of the ATC'24 tables as configurations.
#pragma once

#include <string>

#include "plan/published/kwai_memory.h"
#include "plan/published/table.h"

namespace penstock::plan {

KwaiCase kwai_memory_case(const Table& table, std::size_t row);
std::string kwai_setting(const Table& table, std::size_t row);

}  // namespace penstock::plan
