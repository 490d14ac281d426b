// SPDX-License-Identifier: Apache-2.0
// How those who start ranks, as threads or as processes, hear of failing ones.
#pragma once

#include <exception>
#include <functional>

namespace penstock::comm {

// Called once on every rank that fails, one call at a time in a process, before the other ranks are told. The
// rank that failed by itself gives its own exception; the others give a PeerFailure, whose text names the
// rank that failed.
using FailureReport = std::function<void(int rank, const std::exception& failure)>;

}  // namespace penstock::comm
