// SPDX-License-Identifier: Apache-2.0
#include "comm/reduce.h"

namespace penstock::comm {
namespace {

template <class T>
void combine_as(void* into, const void* from, std::size_t count, Reduction reduction) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  if (reduction == Reduction::Sum) {
    for (std::size_t i = 0; i < count; ++i) a[i] += b[i];
  } else {
    // The second comparison is true only for a NaN.
    for (std::size_t i = 0; i < count; ++i) a[i] = a[i] < b[i] || b[i] != b[i] ? b[i] : a[i];
  }
}

}  // namespace

std::size_t size_of(Type type) { return type == Type::F32 ? sizeof(float) : sizeof(double); }

void combine_tree(std::span<void* const> blocks, std::size_t count, Type type, Reduction reduction) {
  for_tree(blocks, [&](void* into, const void* from) { combine(into, from, count, type, reduction); });
}

void combine(void* into, const void* from, std::size_t count, Type type, Reduction reduction) {
  switch (type) {
    case Type::F32:
      return combine_as<float>(into, from, count, reduction);
    case Type::F64:
      return combine_as<double>(into, from, count, reduction);
    case Type::I64:
      return combine_as<std::int64_t>(into, from, count, reduction);
  }
}

}  // namespace penstock::comm
