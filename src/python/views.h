// SPDX-License-Identifier: Apache-2.0
// Columns of a list of structs as NumPy arrays that share its memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <vector>

namespace penstock::python {

template <class Value>
using View = nanobind::ndarray<nanobind::numpy, const Value, nanobind::ndim<1>>;

// The member at `offset` bytes of every row; `owner` keeps the rows alive.
template <class Value, class Row>
nanobind::object view(const std::vector<Row>& rows, std::size_t offset, nanobind::handle owner) {
  static_assert(sizeof(Row) % alignof(Value) == 0 && sizeof(Row) % sizeof(Value) == 0,
                "strides count whole values");
  const auto* first = reinterpret_cast<const std::byte*>(rows.data()) + offset;
  const std::size_t shape[] = {rows.size()};
  const std::int64_t strides[] = {static_cast<std::int64_t>(sizeof(Row) / sizeof(Value))};
  return nanobind::cast(View<Value>(reinterpret_cast<const Value*>(first), 1, shape, owner, strides),
                        nanobind::rv_policy::reference_internal);
}

}  // namespace penstock::python
