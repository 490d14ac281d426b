// SPDX-License-Identifier: Apache-2.0
// How launchers of ranks, as threads or processes, learn that a rank failed.
#pragma once

#include <exception>
#include <functional>

namespace penstock::comm {

// Called once on every failing rank, one call at a time per process, before other ranks are notified. The
// rank that failed by itself passes its own exception, the others a PeerFailure, whose text names that rank.
using FailureReport = std::function<void(int rank, const std::exception& failure)>;

}  // namespace penstock::comm
