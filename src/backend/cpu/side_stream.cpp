// SPDX-License-Identifier: Apache-2.0
#include "backend/side_stream.h"

namespace penstock::backend {

struct SideStream::State {};
struct SideStream::Scope::Guard {};

SideStream::SideStream() = default;
SideStream::~SideStream() = default;

SideStream::Scope::Scope(SideStream&) {}
SideStream::Scope::~Scope() = default;

}  // namespace penstock::backend
