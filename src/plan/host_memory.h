// SPDX-License-Identifier: Apache-2.0
// Host memory. Separate from device memory because the ranks of a node share it.
#pragma once

#include <optional>

#include "plan/search.h"

namespace penstock::plan {

// Host bytes that the ranks of a node need, as `penstock train` counts them (cli/train/host_check.h): a sum
// over the fullest ranks, as many as a node has. Counts offloaded records and, on a CPU, tensors too; not
// copies of states. Uses `predicted` if the candidate has it, else the closed form of the devices that fill a
// node at either end.
double bytes_on_a_host(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Host bytes available to them. On a CPU, without the reserved part.
double bytes_of_a_host(const Cluster& cluster);

bool host_holds(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Needed memory over available memory: the device's if that exceeds 1, else the host's. Above 1 the candidate
// does not fit; the lower the value, the closer it is to fitting.
double share_of_memory(const Workload& workload, const Cluster& cluster, const Candidate& candidate);

// Keeps the candidate nearest to fitting; the earlier one on ties.
void keep_nearer(const Workload& workload, const Cluster& cluster, const Candidate& miss,
                 std::optional<Candidate>& nearest);

}  // namespace penstock::plan
