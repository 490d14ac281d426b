// SPDX-License-Identifier: Apache-2.0
#include "plan/host_memory.h"

#include <gtest/gtest.h>

#include "plan/plan_print.h"
#include "reference.h"

namespace penstock::plan {
namespace {

Cluster node_of(const char* hardware, std::int64_t gpus, double limit) {
  return {read_hardware(hardware), gpus, limit, sim::kPenstock};
}

Workload long_sequences() { return {find_model("llama-7b"), 32768, 64}; }

// With all records on the host.
Candidate offloaded(const mesh::Mesh& mesh) {
  Candidate candidate{
      .layout = {.mesh = mesh, .slices = 16, .keep = model::keep_of(model::Policy::None), .offload = 1}};
  candidate.memory = fit_memory(long_sequences(), candidate.layout, 1e15);
  return candidate;
}

TEST(HostMemory, IsThatOfTheRanksThatHoldMost) {
  const Workload w = long_sequences();
  const Cluster on = node_of("h800", 32, 1e15);
  for (const int replicas : {1, 2, 4, 8}) {
    const Candidate candidate = offloaded({.data = replicas, .pipeline = 32 / replicas});
    const model::MemoryTable devices = layout_memory(w, candidate.layout);
    EXPECT_GT(devices.front().host, devices.back().host);
    EXPECT_EQ(candidate.memory.host, devices.front().host);
    Bytes first = 0;  // the node of the first stages
    for (int device = 0; device < 8 / replicas; ++device) first += devices[device].host;
    EXPECT_EQ(bytes_on_a_host(w, on, candidate), as_double(first * replicas)) << replicas;
  }
}

TEST(HostMemory, OfAProcessorHoldsTheTensorsToo) {
  const Workload w = long_sequences();
  const Candidate all = offloaded({.pipeline = 2});
  Candidate none = all;
  none.layout.offload = 0;
  none.memory = fit_memory(w, none.layout, 1e15);
  const double limit = as_double(none.memory.fullest.total() + all.memory.fullest.total()) / 2;
  Cluster on = node_of("this-machine", 2, limit);
  on.hardware.device.memory_gb = limit / 1e9;
  on.hardware.device.reserved_gb = 0;
  on.hardware.node.host_memory_gb = 2 * limit / 1e9;
  EXPECT_GE(bytes_on_a_host(w, on, all), bytes_on_a_host(w, on, none)) << "nothing leaves the memory";
  Candidate some = all;
  some.memory = fit_with_least_offload(w, some.layout, limit);
  some.layout.offload = some.memory.offload;
  ASSERT_TRUE(some.memory.fits);
  EXPECT_FALSE(host_holds(w, on, some));
  on.hardware.device.backend = "cuda";
  EXPECT_TRUE(host_holds(w, on, some));
}

TEST(HostMemory, HowFarACandidateIsFromFittingIsOfTheMemoryThatIsTooSmall) {
  const Workload w = long_sequences();
  const Candidate candidate = offloaded({.pipeline = 8});
  const double device = as_double(candidate.memory.fullest.total());
  Cluster on = node_of("h800", 8, device / 2);
  const double host = bytes_on_a_host(w, on, candidate);
  on.hardware.node.host_memory_gb = 1e-9 * host / 3;
  EXPECT_DOUBLE_EQ(share_of_memory(w, on, candidate), 2);
  on.limit = 2 * device;
  EXPECT_DOUBLE_EQ(share_of_memory(w, on, candidate), 3);
  on.hardware.node.host_memory_gb = 1e-9 * host * 4;
  EXPECT_DOUBLE_EQ(share_of_memory(w, on, candidate), 0.25);
}

TEST(HostMemory, ASmallerShareIsOfferedOnlyWhereTheDevicesHaveRoomForTheRest) {
  const Workload w = long_sequences();
  Candidate candidate = offloaded({.pipeline = 8});
  Layout half = candidate.layout;
  half.offload = 0.5;
  const double needed = as_double(fit_memory(w, half, 1e15).fullest.total());
  Plan plan{w, node_of("h800", 8, needed + 1), {}};
  plan.cluster.hardware.node.host_memory_gb = 0.505e-9 * bytes_on_a_host(w, plan.cluster, candidate);
  const std::string offer = "or less on these: offload 50 % of the records";
  EXPECT_NE(what_would_fit(w, plan.cluster, candidate).find(offer), std::string::npos)
      << what_would_fit(w, plan.cluster, candidate);
  plan.cluster.limit = needed - 1e6;
  const std::string without = what_would_fit(w, plan.cluster, candidate);
  EXPECT_TRUE(without.starts_with("hosts of ")) << without;
  EXPECT_EQ(without.find("or less"), std::string::npos) << without;
  plan.result.nearest_miss = candidate;
  EXPECT_TRUE(print_nearest_miss(plan).starts_with("nothing fits on hosts of ")) << print_nearest_miss(plan);
}

// Devices of any size leave the records on hosts that are too small for them.
TEST(HostMemory, LargerDevicesAreOfferedWithTheHostsThatTheyNeed) {
  const Workload w = long_sequences();
  const Candidate candidate = offloaded({.pipeline = 8});
  const double device = as_double(candidate.memory.fullest.total());
  Cluster on = node_of("h800", 8, device / 2);
  on.hardware.device.memory_gb = device / 2e9 + on.hardware.device.reserved_gb;
  EXPECT_EQ(what_would_fit(w, on, candidate).find("hosts of"), std::string::npos)
      << what_would_fit(w, on, candidate);
  const double host = bytes_on_a_host(w, on, candidate);
  on.hardware.node.host_memory_gb = 1e-9 * host / 3;
  const std::string ways = what_would_fit(w, on, candidate);
  const std::size_t devices = ways.find("devices of ");
  ASSERT_NE(devices, std::string::npos) << ways;
  EXPECT_NE(ways.find(" GB and hosts of ", devices), std::string::npos) << ways;
  on.limit = device / 1.5;
  on.hardware.device.memory_gb = 80;
  EXPECT_NE(what_would_fit(w, on, candidate).find(" GB\" and hosts of "), std::string::npos)
      << what_would_fit(w, on, candidate);
}

}  // namespace
}  // namespace penstock::plan
