// SPDX-License-Identifier: Apache-2.0
#include "plan/hardware.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

void describe_device(Device& device, OptionTable& table) {
  const std::string_view section = "device";
  table.push_back({section, "name", &device.name, "What the machine is called.", {}});
  table.push_back({section, "peak", &device.peak, "The rate that MFU refers to.", one_of({"bf16", "f32"})});
  table.push_back(
      {section, "bf16_tflops", &device.bf16_tflops, "Peak of dense bf16 products.", not_negative()});
  table.push_back({section, "f32_tflops", &device.f32_tflops, "Peak of f32 products.", not_negative()});
  table.push_back({section, "memory_gb", &device.memory_gb, "Memory of a device.", not_negative()});
  table.push_back(
      {section, "reserved_gb", &device.reserved_gb, "Of it out of a trainer's reach.", not_negative()});
  table.push_back({section, "memory_gbps", &device.memory_gbps, "Rate of that memory.", not_negative()});
}

void describe_efficiency(Efficiency& efficiency, OptionTable& table) {
  const std::string_view section = "efficiency";
  const Constraint share = from_to(0.001, 1);
  table.push_back({section, "matrix", &efficiency.matrix, "Large matrix products, of the peak.", share});
  table.push_back({section, "matrix_traffic", &efficiency.matrix_traffic,
                   "Share of a product's memory traffic that its arithmetic does not hide.", from_to(0, 1)});
  table.push_back(
      {section, "attention", &efficiency.attention, "Flash attention forward, of the peak.", share});
  table.push_back(
      {section, "attention_backward", &efficiency.attention_backward, "Backward, of forward.", share});
  table.push_back({section, "plain_attention", &efficiency.plain_attention,
                   "Batched products of attention with its scores in memory, of the peak.", share});
  table.push_back({section, "memory", &efficiency.memory, "Elementwise work, of the memory's rate.", share});
  table.push_back({section, "tensor_exposed", &efficiency.tensor_exposed,
                   "Share of overlapped tensor-parallel traffic that shows.", from_to(0, 1)});
  table.push_back({section, "pipeline_exposed", &efficiency.pipeline_exposed,
                   "Time of transfers that wait for each other, of their bare duration.", from_to(0, 3)});
}

void describe_kernels(Kernels& kernels, OptionTable& table) {
  const std::string_view section = "kernels";
  table.push_back({section, "gap_us", &kernels.gap_us, "Between two kernels.", not_negative()});
  table.push_back({section, "layer_dispatch_ms", &kernels.layer_dispatch_ms,
                   "Least time in which the host issues a layer's forward.", not_negative()});
  table.push_back({section, "step_ms", &kernels.step_ms, "Fixed time of a step.", not_negative()});
}

void describe_links(Node& node, Network& network, OptionTable& table) {
  const Constraint share = from_to(0.001, 1);
  table.push_back({"node", "gpus", &node.gpus, "Devices of a node.", from_to(1, 1024)});
  table.push_back({"node", "link_gbps", &node.link_gbps, "Between devices, each direction.", not_negative()});
  table.push_back({"node", "link_efficiency", &node.link_efficiency, "Of it in collectives.", share});
  table.push_back({"node", "link_latency_us", &node.link_latency_us, "Of one ring step.", not_negative()});
  table.push_back(
      {"node", "host_link_gbps", &node.host_link_gbps, "Device to host, each direction.", not_negative()});
  table.push_back({"node", "host_link_efficiency", &node.host_link_efficiency, "Of it in copies.", share});
  table.push_back({"node", "host_memory_gb", &node.host_memory_gb, "Memory of the host.", not_negative()});
  table.push_back({"node", "host_memory_gbps", &node.host_memory_gbps,
                   "Its rate, for all devices' copies together.", not_negative()});
  table.push_back({"node", "disk_gbps", &node.disk_gbps,
                   "Of the disk of offloaded records, shared by all copies; 0: not known.", not_negative()});
  table.push_back(
      {"network", "gbps_per_gpu", &network.gbps_per_gpu, "A device's share between nodes.", not_negative()});
  table.push_back({"network", "efficiency", &network.efficiency, "Of it in transfers.", share});
  table.push_back(
      {"network", "gradient_efficiency", &network.gradient_efficiency, "Of it in sums of gradients.", share});
  table.push_back({"network", "latency_us", &network.latency_us, "Between nodes.", not_negative()});
}

void describe_measured(Measured& measured, OptionTable& table) {
  const std::string_view section = "measured";
  table.push_back(
      {section, "matrix_gflop", &measured.matrix_gflop, "Work of measured products.", positive()});
  table.push_back({section, "matrix_tflops", &measured.matrix_tflops, "Their rates.", positive()});
  table.push_back(
      {section, "attention_tokens", &measured.attention_tokens, "Lengths of the keys.", positive()});
  table.push_back(
      {section, "attention_tflops", &measured.attention_tflops, "Attention's rates there.", positive()});
}

void require_given(double value, const char* key, std::string_view origin) {
  if (!(value > 0)) throw InputError(std::string(origin) + ": " + key + " is missing; it must be positive");
}

void check_curve(const Numbers& at, const Numbers& rates, const char* key, std::string_view origin) {
  if (at.size() != rates.size()) {
    throw InputError(std::string(origin) + ": " + key + " has " + std::to_string(at.size()) + " points and " +
                     std::to_string(rates.size()) + " rates; they must be as many");
  }
  if (std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) != at.end()) {
    throw InputError(std::string(origin) + ": " + key + " must ascend");
  }
}

}  // namespace

void describe(Hardware& hardware, OptionTable& table) {
  describe_device(hardware.device, table);
  describe_efficiency(hardware.efficiency, table);
  describe_kernels(hardware.kernels, table);
  describe_links(hardware.node, hardware.network, table);
  describe_measured(hardware.measured, table);
}

void validate(const Hardware& hardware, std::string_view origin) {
  const bool f32 = hardware.device.peak == "f32";
  require_given(f32 ? hardware.device.f32_tflops : hardware.device.bf16_tflops,
                f32 ? "device.f32_tflops" : "device.bf16_tflops", origin);
  require_given(hardware.device.memory_gb, "device.memory_gb", origin);
  require_given(hardware.device.memory_gbps, "device.memory_gbps", origin);
  require_given(hardware.node.link_gbps, "node.link_gbps", origin);
  require_given(hardware.node.host_link_gbps, "node.host_link_gbps", origin);
  require_given(hardware.node.host_memory_gb, "node.host_memory_gb", origin);
  require_given(hardware.node.host_memory_gbps, "node.host_memory_gbps", origin);
  require_given(hardware.network.gbps_per_gpu, "network.gbps_per_gpu", origin);
  if (hardware.device.reserved_gb >= hardware.device.memory_gb) {
    throw InputError(std::string(origin) +
                     ": device.reserved_gb = " + exact_number(hardware.device.reserved_gb) +
                     " leaves nothing of device.memory_gb = " + exact_number(hardware.device.memory_gb));
  }
  check_curve(hardware.measured.matrix_gflop, hardware.measured.matrix_tflops, "measured.matrix_gflop",
              origin);
  check_curve(hardware.measured.attention_tokens, hardware.measured.attention_tflops,
              "measured.attention_tokens", origin);
}

}  // namespace penstock::plan
