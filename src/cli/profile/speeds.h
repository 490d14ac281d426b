// SPDX-License-Identifier: Apache-2.0
// The speeds that a run is simulated with: from a hardware file, or from this machine's profile, which is
// measured when first needed and kept in the cache folder ($XDG_CACHE_HOME/penstock, ~/.cache/penstock).
#pragma once

#include <string>

#include "comm/communicator.h"
#include "run/options.h"
#include "sim/costs/hardware.h"

namespace penstock::cli {

struct Speeds {
  sim::Hardware hardware = sim::assumed_hardware();
  std::string origin;  // source, in words
  Words assumed;       // speeds that the origin lacks, with their defaults
};

std::string described(const Speeds& speeds);  // the origin, and what it lacks
std::string to_json(const Speeds& speeds);

inline constexpr const char* kAssumed = "assumed";  // --hardware assumed: measure nothing

// Key of a kept profile. Each processor, build and division of the cores has its own profile.
struct ProfileKey {
  model::Precision precision = model::Precision::BF16;
  int ranks = 1;      // at work on this host at once
  int threads = 1;    // per rank
  int elsewhere = 0;  // the launcher's ranks on other hosts, measured together
};

// Returns how many of `ranks` ranks on this host can have their own cores or GPU; at least 1. Simulations
// use speeds measured with that many ranks for all.
int with_cores(int ranks, int threads);

// Keeps a profile and returns its file. If it cannot be kept, says so on stderr and returns an empty path.
std::string keep_profile(const ProfileKey& key, const std::string& text);

// `flag`: --hardware, a name or path; "assumed"; empty: this machine's profile, which is measured now, with a
// line on stderr, unless it is kept already. Throws InputError for unknown or faulty files.
Speeds speeds_of(const std::string& flag, const run::Options& options);

// This machine's speeds, equal on all ranks: rank 0 reads the profile, or all ranks measure it. Collective.
Speeds speeds_together(const run::Options& options, comm::Communicator& world);

}  // namespace penstock::cli
