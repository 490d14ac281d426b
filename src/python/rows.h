// SPDX-License-Identifier: Apache-2.0
// Schedules written in Python: lists of actions, or columns.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <string>

#include "schedule/schedule.h"

namespace penstock::python {

// One sequence per device. An action is text ("3F2", "0B1.7", a pair "(0F1;3B0)OVERLAP_F_B"), a tuple (kind,
// stage, micro-batch[, slice]) with kind "F", "B", "I" or "W", or None for an idle cell. Throws InputError
// that names device, position, the value and what is expected.
schedule::Schedule schedule_of_rows(const std::string& name, nanobind::sequence rows);

template <class Number>
using Column = nanobind::ndarray<const Number, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// Columns of equal length, one row per action, in the order in which its device runs it. Kinds are letters.
// Throws InputError that names the column and the row.
schedule::Schedule schedule_of_columns(const std::string& name, Column<std::int64_t> device,
                                       Column<std::uint8_t> kind, Column<std::int64_t> stage,
                                       Column<std::int64_t> micro_batch, Column<std::int64_t> slice);

}  // namespace penstock::python
