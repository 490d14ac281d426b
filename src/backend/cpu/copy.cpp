// SPDX-License-Identifier: Apache-2.0
#include "backend/copy.h"

#include <cstring>

namespace penstock::backend {

void copy_bytes(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void synchronize() {}

}  // namespace penstock::backend
