// SPDX-License-Identifier: Apache-2.0
// The speeds that a run is simulated with: of a hardware file, or of this machine, whose profile is kept in
// the cache folder ($XDG_CACHE_HOME/penstock, ~/.cache/penstock) and made when first needed.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "run/options.h"
#include "sim/costs/hardware.h"

namespace penstock::cli {

struct Speeds {
  sim::Hardware hardware = sim::assumed_hardware();
  std::string origin;  // in words
  Words assumed;       // speeds that the origin does not give, with their defaults
};

inline constexpr const char* kAssumed = "assumed";  // --hardware assumed: measure nothing

// What a profile depends on. Another processor, build or division of the cores has its own.
struct ProfileKey {
  model::Precision precision = model::Precision::BF16;
  int ranks = 1;      // that were at work here at once
  int threads = 1;    // of each
  int elsewhere = 0;  // a launcher's ranks on other hosts, measured together with these
};

// Of so many ranks of this host those that have cores or cards of their own; at least one. Simulations take
// the speeds of these alone for all.
int with_cores(int ranks, int threads);

// Keeps a profile, and returns its file: empty where it cannot be kept, which is told on stderr.
std::string keep_profile(const ProfileKey& key, const std::string& text);

// Of a flag --hardware: a name or path; "assumed"; empty: this machine's profile, which is measured now, with
// a line on stderr, unless it is there. Throws InputError for unknown or faulty files.
Speeds speeds_of(const std::string& flag, const run::Options& options);

// This machine's, the same on all ranks: rank 0 reads the profile, or all measure it together. Collective.
Speeds speeds_together(const run::Options& options, comm::Communicator& world);

}  // namespace penstock::cli
