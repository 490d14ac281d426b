// SPDX-License-Identifier: Apache-2.0
// Memory of hosts: a law of its own, since the ranks of a node share it.
#pragma once

#include <optional>

#include "plan/search.h"

namespace penstock::plan {

// Bytes that the ranks of a node have on its host, as `penstock train` counts them (cli/train/host_check.h):
// of those that hold most, as many as a node has, their offloaded records and, on a processor, their tensors
// too; not copies of states. By the candidate's predicted devices, or the closed form of those that fill a
// node at either end.
double bytes_on_a_host(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// What is there for them: on a processor, without what is in use otherwise.
double bytes_of_a_host(const Cluster& cluster);

bool host_holds(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// What a candidate needs as part of what there is, of the device's memory where that is too small, else of
// the host's. Above 1 it does not fit, and the less the nearer it is to fitting.
double share_of_memory(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Of candidates that do not fit, keeps the nearest; the first of equals.
void keep_nearer(const Workload& workload, const Cluster& cluster, const Candidate& miss,
                 std::optional<Candidate>& nearest);

}  // namespace penstock::plan
