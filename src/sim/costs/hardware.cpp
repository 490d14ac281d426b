// SPDX-License-Identifier: Apache-2.0
#include "sim/costs/hardware.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace penstock::sim {
namespace {

constexpr double kMostGigabytes = 1e9;  // 64 bits count the bytes

void describe_device(Device& device, OptionTable& table) {
  const std::string_view section = "device";
  table.push_back({section, "name", &device.name, "Name of the machine."});
  table.push_back(
      {section, "published_as", &device.published_as, "Prefixes of its names in tables of published runs."});
  table.push_back(
      {section, "backend", &device.backend, "Device that computes: CPU or GPU.", one_of({"cpu", "cuda"})});
  table.push_back({section, "peak", &device.peak, "Peak rate that MFU refers to.", one_of({"bf16", "f32"})});
  table.push_back(
      {section, "bf16_tflops", &device.bf16_tflops, "Peak of dense bf16 products.", not_negative()});
  table.push_back({section, "f32_tflops", &device.f32_tflops, "Peak of f32 products.", not_negative()});
  table.push_back(
      {section, "memory_gb", &device.memory_gb, "Memory per device.", from_to(0, kMostGigabytes)});
  table.push_back(
      {section, "reserved_gb", &device.reserved_gb, "Part of it that a trainer cannot use.", not_negative()});
  table.push_back({section, "memory_gbps", &device.memory_gbps, "Bandwidth of that memory.", not_negative()});
}

void describe_efficiency(Efficiency& efficiency, OptionTable& table) {
  const std::string_view section = "efficiency";
  const Constraint share = from_to(0.001, 1);
  table.push_back({section, "matrix", &efficiency.matrix,
                   "Efficiency of large matrix products, relative to the peak.", share});
  table.push_back({section, "matrix_traffic", &efficiency.matrix_traffic,
                   "Share of a product's memory traffic that its arithmetic does not hide.", from_to(0, 1)});
  table.push_back({section, "attention", &efficiency.attention,
                   "Efficiency of the flash attention forward, relative to the peak.", share});
  table.push_back({section, "attention_cudnn", &efficiency.attention_cudnn,
                   "The same with cuDNN's kernels; 0: as attention.", from_to(0, 1)});
  table.push_back({section, "attention_triton", &efficiency.attention_triton,
                   "The same with Triton's; 0: as attention.", from_to(0, 1)});
  table.push_back({section, "attention_fa3", &efficiency.attention_fa3,
                   "The same with FlashAttention 3's; 0: as cuDNN's.", from_to(0, 1)});
  table.push_back({section, "attention_half", &efficiency.attention_half,
                   "Tokens of a call at which half of those rates is reached.", not_negative()});
  table.push_back({section, "narrow_heads", &efficiency.narrow_heads,
                   "Factor on those rates for head sizes up to 64.", share});
  table.push_back({section, "odd_heads", &efficiency.odd_heads,
                   "Factor on plain attention's rate for head sizes that are not a multiple of 8.", share});
  table.push_back({section, "attention_backward", &efficiency.attention_backward,
                   "Attention backward, relative to forward.", share});
  table.push_back({section, "plain_attention", &efficiency.plain_attention,
                   "Batched products of attention with its scores in memory, relative to the peak.", share});
  table.push_back(
      {section, "memory", &efficiency.memory, "Elementwise work, relative to the memory bandwidth.", share});
  table.push_back({section, "tensor_exposed", &efficiency.tensor_exposed,
                   "Share of overlapped tensor-parallel traffic that is not hidden.", from_to(0, 1)});
  table.push_back({section, "pipeline_exposed", &efficiency.pipeline_exposed,
                   "Time of transfers that wait for each other, relative to their bare duration.",
                   from_to(0, 3)});
}

void describe_kernels(Kernels& kernels, OptionTable& table) {
  const std::string_view section = "kernels";
  table.push_back({section, "attention", &kernels.attention, "Library that the attention rates are for.",
                   one_of({"fa2", "cudnn"})});
  table.push_back({section, "gap_us", &kernels.gap_us, "Gap between two kernels.", not_negative()});
  table.push_back({section, "layer_dispatch_ms", &kernels.layer_dispatch_ms,
                   "Minimum host time to issue a layer's forward.", not_negative()});
  table.push_back({section, "step_ms", &kernels.step_ms, "Fixed time per step.", not_negative()});
}

void describe_links(Node& node, Network& network, OptionTable& table) {
  const Constraint share = from_to(0.001, 1);
  table.push_back({"node", "gpus", &node.gpus, "Devices per node.", from_to(1, 1024)});
  table.push_back({"node", "link_gbps", &node.link_gbps, "Link bandwidth between devices, per direction.",
                   not_negative()});
  table.push_back(
      {"node", "link_efficiency", &node.link_efficiency, "Efficiency of that link in collectives.", share});
  table.push_back(
      {"node", "link_latency_us", &node.link_latency_us, "Latency of one ring step.", not_negative()});
  table.push_back({"node", "host_link_gbps", &node.host_link_gbps,
                   "Link bandwidth between device and host, per direction.", not_negative()});
  table.push_back({"node", "host_link_efficiency", &node.host_link_efficiency,
                   "Efficiency of that link in copies.", share});
  table.push_back(
      {"node", "host_memory_gb", &node.host_memory_gb, "Memory of the host.", from_to(0, kMostGigabytes)});
  table.push_back({"node", "host_memory_gbps", &node.host_memory_gbps,
                   "Bandwidth of that memory, for the copies of all devices together.", not_negative()});
  table.push_back({"node", "disk_gbps", &node.disk_gbps,
                   "Bandwidth of the disk for offloaded records, shared by all copies; 0: unknown.",
                   not_negative()});
  table.push_back({"network", "gbps_per_gpu", &network.gbps_per_gpu,
                   "A device's share of the bandwidth between nodes.", not_negative()});
  table.push_back(
      {"network", "efficiency", &network.efficiency, "Efficiency of that share in transfers.", share});
  table.push_back({"network", "gradient_efficiency", &network.gradient_efficiency,
                   "Efficiency of that share in gradient sums.", share});
  table.push_back({"network", "pair_efficiency", &network.pair_efficiency,
                   "Fraction of two links used by sums over groups with two members per node.",
                   from_to(0.5, 1)});
  table.push_back({"network", "latency_us", &network.latency_us, "Latency between nodes.", not_negative()});
  table.push_back({"network", "straggle", &network.straggle,
                   "Share of a step lost to the slowest node, per doubling of the nodes.", from_to(0, 0.2)});
}

void describe_measured(Measured& measured, OptionTable& table) {
  const auto add = [&](std::string_view key, Numbers* numbers, std::string_view sentence) {
    table.push_back({"measured", key, numbers, sentence, positive()});
  };
  add("matrix_tokens", &measured.matrix_tokens, "Rows of the measured products.");
  add("matrix_width", &measured.matrix_width, "Square roots of their weight counts.");
  add("matrix_tflops", &measured.matrix_tflops, "Their forward rates, one row for each of matrix_tokens.");
  add("matrix_input_tflops", &measured.matrix_input_tflops, "For the gradient of the input.");
  add("matrix_weight_tflops", &measured.matrix_weight_tflops, "For the gradient of the weights.");
  add("f32_matrix_tflops", &measured.f32_matrix_tflops, "The same in f32: forward.");
  add("f32_matrix_input_tflops", &measured.f32_matrix_input_tflops, "For the gradient of the input.");
  add("f32_matrix_weight_tflops", &measured.f32_matrix_weight_tflops, "For the gradient of the weights.");
  add("attention_tokens", &measured.attention_tokens, "Queries of a call, and its own keys.");
  add("attention_tflops", &measured.attention_tflops, "Rates of a slice over its own keys.");
  add("attention_backward_tflops", &measured.attention_backward_tflops, "The same for its backward.");
  add("earlier_attention_tflops", &measured.earlier_attention_tflops,
      "Rates of a slice over an earlier one; on a GPU, over as many earlier keys as a call covers.");
  add("earlier_attention_backward_tflops", &measured.earlier_attention_backward_tflops,
      "The same for its backward.");
  add("elementwise_mb", &measured.elementwise_mb, "Sizes of a hidden state.");
  add("elementwise_gbps", &measured.elementwise_gbps, "Rates of a layer's elementwise work at these sizes.");
  add("elementwise_backward_gbps", &measured.elementwise_backward_gbps, "The same for its backward.");
  table.push_back({"measured", "optimizer_gbps", &measured.optimizer_gbps,
                   "Rate of the optimizer's passes; 0: the memory bandwidth.", not_negative()});
  add("link_kb", &measured.link_kb, "Sizes of messages between neighbours.");
  add("link_us", &measured.link_us, "Their times.");
}

void require_given(double value, const char* key, std::string_view origin) {
  constexpr double kLeast = 1e-9;  // with anything slower, times become infinite
  if (value >= kLeast) return;
  throw InputError(std::string(origin) + ": " + key +
                   (value > 0 ? " is less than 1e-09" : " is missing or 0; it must be positive"));
}

void check_ascends(const Numbers& at, const char* key, std::string_view origin) {
  if (std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) != at.end()) {
    throw InputError(std::string(origin) + ": " + key + " must ascend");
  }
}

// efficiency.attention is for FlashAttention 2: another library needs its own rates.
void check_attention_kernels(const Hardware& hardware, std::string_view origin) {
  if (hardware.kernels.attention == "fa2" || !hardware.measured.attention_tokens.empty()) return;
  throw InputError(std::string(origin) + ": kernels.attention = \"" + hardware.kernels.attention +
                   "\" needs its rates, measured.attention_tokens and measured.attention_tflops "
                   "(hardware/h800-cudnn.toml has cuDNN's on Hopper), or \"fa2\"");
}

enum class Needed : bool { No, Yes };

// Throws unless there are `points` values, or none if they are not needed.
void check_values(const Numbers& values, std::size_t points, const char* key, const std::string& of,
                  Needed needed, std::string_view origin) {
  if (values.size() == points || (needed == Needed::No && values.empty())) return;
  throw InputError(std::string(origin) + ": measured." + key + " has " + std::to_string(values.size()) +
                   " values; " + of + " needs " + std::to_string(points));
}

void check_products(const Measured& measured, bool f32, std::string_view origin) {
  check_ascends(measured.matrix_tokens, "measured.matrix_tokens", origin);
  check_ascends(measured.matrix_width, "measured.matrix_width", origin);
  const std::size_t points = measured.matrix_tokens.size() * measured.matrix_width.size();
  const std::string of = "matrix_tokens times matrix_width";
  if (measured.matrix_tokens.empty() != measured.matrix_width.empty()) {
    throw InputError(std::string(origin) +
                     ": measured.matrix_tokens and measured.matrix_width need each other");
  }
  check_values(measured.matrix_tflops, points, "matrix_tflops", of, f32 ? Needed::No : Needed::Yes, origin);
  check_values(measured.matrix_input_tflops, points, "matrix_input_tflops", of, Needed::No, origin);
  check_values(measured.matrix_weight_tflops, points, "matrix_weight_tflops", of, Needed::No, origin);
  check_values(measured.f32_matrix_tflops, points, "f32_matrix_tflops", of, f32 ? Needed::Yes : Needed::No,
               origin);
  check_values(measured.f32_matrix_input_tflops, points, "f32_matrix_input_tflops", of, Needed::No, origin);
  check_values(measured.f32_matrix_weight_tflops, points, "f32_matrix_weight_tflops", of, Needed::No, origin);
}

void check_measured(const Measured& measured, bool f32, std::string_view origin) {
  check_products(measured, f32, origin);
  const auto curve = [&](const Numbers& at, const char* at_key, const Numbers& values, const char* key,
                         Needed needed) {
    check_ascends(at, ("measured." + std::string(at_key)).c_str(), origin);
    check_values(values, at.size(), key, at_key, needed, origin);
  };
  const Numbers& lengths = measured.attention_tokens;
  curve(lengths, "attention_tokens", measured.attention_tflops, "attention_tflops", Needed::Yes);
  curve(lengths, "attention_tokens", measured.attention_backward_tflops, "attention_backward_tflops",
        Needed::No);
  curve(lengths, "attention_tokens", measured.earlier_attention_tflops, "earlier_attention_tflops",
        Needed::No);
  curve(lengths, "attention_tokens", measured.earlier_attention_backward_tflops,
        "earlier_attention_backward_tflops", Needed::No);
  const Numbers& sizes = measured.elementwise_mb;
  curve(sizes, "elementwise_mb", measured.elementwise_gbps, "elementwise_gbps", Needed::Yes);
  curve(sizes, "elementwise_mb", measured.elementwise_backward_gbps, "elementwise_backward_gbps", Needed::No);
  curve(measured.link_kb, "link_kb", measured.link_us, "link_us", Needed::Yes);
  if (!std::is_sorted(measured.link_us.begin(), measured.link_us.end()))
    throw InputError(std::string(origin) + ": measured.link_us must not fall as messages grow");
}

// A measured rate may exceed a peak that is another's figure or was measured in another hour, but not by far:
// a unit is wrong.
void check_units(const Hardware& hardware, std::string_view origin) {
  constexpr double kFar = 10;
  const auto check = [&](const Numbers& rates, const char* key, double peak, const char* peak_key) {
    const double greatest = rates.empty() ? 0 : *std::ranges::max_element(rates);
    if (peak == 0 || greatest <= kFar * peak) return;
    throw InputError(std::string(origin) + ": measured." + key + " has " + exact_number(greatest) +
                     ", more than ten times " + peak_key + " = " + exact_number(peak) +
                     "; both are in 1e12 operations per second");
  };
  const Measured& measured = hardware.measured;
  const Device& device = hardware.device;
  check(measured.matrix_tflops, "matrix_tflops", device.bf16_tflops, "device.bf16_tflops");
  check(measured.matrix_input_tflops, "matrix_input_tflops", device.bf16_tflops, "device.bf16_tflops");
  check(measured.matrix_weight_tflops, "matrix_weight_tflops", device.bf16_tflops, "device.bf16_tflops");
  check(measured.f32_matrix_tflops, "f32_matrix_tflops", device.f32_tflops, "device.f32_tflops");
  check(measured.f32_matrix_input_tflops, "f32_matrix_input_tflops", device.f32_tflops, "device.f32_tflops");
  check(measured.f32_matrix_weight_tflops, "f32_matrix_weight_tflops", device.f32_tflops,
        "device.f32_tflops");
  const double peak = hardware.f32() ? device.f32_tflops : device.bf16_tflops;
  const char* peak_key = hardware.f32() ? "device.f32_tflops" : "device.bf16_tflops";
  check(measured.attention_tflops, "attention_tflops", peak, peak_key);
  check(measured.attention_backward_tflops, "attention_backward_tflops", peak, peak_key);
  check(measured.earlier_attention_tflops, "earlier_attention_tflops", peak, peak_key);
  check(measured.earlier_attention_backward_tflops, "earlier_attention_backward_tflops", peak, peak_key);
}

const Numbers& first_given(const Numbers& wanted, const Numbers& otherwise) {
  return wanted.empty() ? otherwise : wanted;
}

double copies_at_once(const Node& node, std::int64_t ranks) {
  return 2.0 * as_double(std::min(ranks, node.gpus));
}

}  // namespace

const Numbers& Measured::input_rates(bool f32) const {
  return first_given(f32 ? f32_matrix_input_tflops : matrix_input_tflops, forward_rates(f32));
}

const Numbers& Measured::weight_rates(bool f32) const {
  return first_given(f32 ? f32_matrix_weight_tflops : matrix_weight_tflops, forward_rates(f32));
}

double Hardware::copy_rate(std::int64_t ranks) const {
  const double link = node.host_link_gbps * node.host_link_efficiency;
  return 1e9 * std::min(link, node.host_memory_gbps / copies_at_once(node, ranks));
}

double Hardware::disk_rate(std::int64_t ranks) const {
  return std::min(copy_rate(ranks), 1e9 * node.disk_gbps / copies_at_once(node, ranks));
}

double Hardware::straggling(std::int64_t ranks) const {
  const double nodes = std::max(1.0, static_cast<double>(ranks) / static_cast<double>(node.gpus));
  return network.straggle * std::log2(nodes);
}

Hardware assumed_hardware() {
  constexpr double kFree = std::numeric_limits<double>::infinity();
  Hardware hardware;
  hardware.device = {.name = "assumed", .bf16_tflops = 0.1, .f32_tflops = 0.1, .memory_gbps = kFree};
  hardware.efficiency = {.matrix = 1, .matrix_traffic = 0, .attention = 0.5, .attention_backward = 1};
  hardware.kernels.gap_us = 0;
  hardware.node = {.link_gbps = 5,
                   .link_efficiency = 1,
                   .link_latency_us = 0,
                   .host_link_gbps = 2,
                   .host_link_efficiency = 1,
                   .host_memory_gbps = kFree};
  hardware.network = {.gbps_per_gpu = 5, .efficiency = 1, .gradient_efficiency = 1, .latency_us = 0};
  return hardware;
}

void describe(Hardware& hardware, OptionTable& table) {
  describe_device(hardware.device, table);
  describe_efficiency(hardware.efficiency, table);
  describe_kernels(hardware.kernels, table);
  describe_links(hardware.node, hardware.network, table);
  describe_measured(hardware.measured, table);
}

Words assumed_speeds(const Hardware& hardware, const Words& given) {
  const Measured& measured = hardware.measured;
  Words needed{"efficiency.attention", "efficiency.attention_backward", "efficiency.memory"};
  if (!measured.attention_tokens.empty()) needed.erase(needed.begin());
  if (!measured.attention_backward_tflops.empty()) std::erase(needed, "efficiency.attention_backward");
  if (measured.forward_rates(hardware.f32()).empty()) {
    needed.insert(needed.begin(), {"efficiency.matrix", "efficiency.matrix_traffic"});
  }
  for (const char* key : {"kernels.gap_us", "kernels.step_ms", "node.gpus", "node.link_efficiency",
                          "node.link_latency_us", "node.host_link_efficiency", "network.efficiency",
                          "network.gradient_efficiency", "network.latency_us"}) {
    needed.emplace_back(key);
  }
  Hardware defaults;
  OptionTable table;
  describe(defaults, table);
  Words assumed;
  for (const Option& option : table) {
    const std::string name = option.name();
    if (std::ranges::find(needed, name) == needed.end() || std::ranges::find(given, name) != given.end())
      continue;
    assumed.push_back(name + " = " + value_text(option));
  }
  return assumed;
}

void validate(const Hardware& hardware, std::string_view origin) {
  const bool f32 = hardware.f32();
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
  check_measured(hardware.measured, hardware.f32(), origin);
  check_units(hardware, origin);
  check_attention_kernels(hardware, origin);
}

}  // namespace penstock::sim
