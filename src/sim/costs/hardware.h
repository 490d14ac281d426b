// SPDX-License-Identifier: Apache-2.0
// A machine type and the cluster built from it: the content of a hardware file (hardware/*.toml). Units are
// in the names: tflops 1e12 FLOP/s, gbps 1e9 bytes/s, gb 1e9 bytes. Rates are the vendor's. The achieved
// fractions are efficiencies, properties of the machine with its libraries, each with its source in the file.
#pragma once

#include <string>

#include "base/options.h"
#include "base/units.h"

namespace penstock::sim {

struct Device {
  std::string name = "unnamed";
  std::string backend = "cpu";  // a value of train.device
  Words published_as;           // prefixes of its names in tables of published runs
  std::string peak = "bf16";    // the rate that MFU refers to
  double bf16_tflops = 0;       // dense matrix products
  double f32_tflops = 0;
  double memory_gb = 0;
  double reserved_gb = 0;  // not usable by a trainer: context, communication buffers, fragmentation
  double memory_gbps = 0;
};

struct Efficiency {
  double matrix = 0.8;          // of the peak rate, for large matrix products
  double matrix_traffic = 0.4;  // share of a product's memory traffic that its arithmetic does not hide
  double attention = 0.5;       // of the peak rate, flash attention forward
  double attention_cudnn = 0;   // ... with cuDNN's or Triton's kernels; 0: as attention
  double attention_triton = 0;
  double attention_fa3 = 0;   // ... with FlashAttention 3; 0: as cuDNN, whose published rates are similar
  double attention_half = 0;  // tokens of a call at which half of those rates is reached
  double narrow_heads = 1;    // factor on those rates for head sizes up to 64
  double odd_heads = 1;       // factor on plain_attention for head sizes that are not a multiple of 8
  double attention_backward = 0.85;  // relative to forward
  double plain_attention = 0.4;  // of the peak rate, batched products of attention with its scores in memory
  double memory = 0.9;           // of the memory rate, for elementwise work
  double tensor_exposed =
      0.4;  // share of tensor-parallel traffic not hidden behind the products it overlaps with
  double pipeline_exposed =
      1.0;  // duration of stage transfers that wait for each other, relative to the bare duration
};

struct Kernels {
  std::string attention = "fa2";  // library of the file's attention rates: FlashAttention 2 or cuDNN
  double gap_us = 4;              // between two kernels
  double layer_dispatch_ms = 0;   // minimum host time to issue a layer's forward
  double step_ms = 0;             // fixed time of a step
};

struct Node {
  std::int64_t gpus = 8;
  double link_gbps = 0;  // per GPU and direction, between GPUs of the node
  double link_efficiency = 0.8;
  double link_latency_us = 5;  // per step of a ring
  double host_link_gbps = 0;   // per GPU and direction
  double host_link_efficiency = 0.8;
  double host_memory_gb = 0;
  double host_memory_gbps = 0;  // shared by all copies of the node
  double disk_gbps = 0;         // for files of offloaded records, also shared; 0: unknown
};

struct Network {
  double gbps_per_gpu = 0;  // the GPU's share of the node's network, per direction
  double efficiency = 0.9;
  double gradient_efficiency = 0.8;  // for gradient sums over data-parallel groups
  double pair_efficiency = 1;        // further factor with two group members per node; 0.5: one of two links
  double latency_us = 20;
  double straggle = 0;  // share of a step lost to the slowest node, per doubling of the nodes
};

// Measured tables, written by penstock profile; if given, they replace the efficiency of the same name.
// Positions ascend. An empty list of rates falls back to the forward's. A table of products has one row of
// rates per number of tokens, in row-major order.
struct Measured {
  Numbers matrix_tokens;         // m of a product [m, k] x [k, n]
  Numbers matrix_width;          // sqrt(k·n)
  Numbers matrix_tflops;         // forward product in bf16
  Numbers matrix_input_tflops;   // backward product for the input gradient
  Numbers matrix_weight_tflops;  // backward product for the weight gradient
  Numbers f32_matrix_tflops;     // the same three in f32
  Numbers f32_matrix_input_tflops;
  Numbers f32_matrix_weight_tflops;
  Numbers attention_tokens;  // queries of a call; it has as many own keys
  Numbers attention_tflops;  // a slice over its own keys: causal, half of the products counted
  Numbers attention_backward_tflops;
  // A slice over an earlier slice's keys; on a GPU over the number of earlier keys that one call covers,
  // which are those of several slices if the slices are short (model/joined_keys.h).
  Numbers earlier_attention_tflops;
  Numbers earlier_attention_backward_tflops;
  Numbers elementwise_mb;    // size of one hidden state, 1e6 bytes
  Numbers elementwise_gbps;  // elementwise traffic of a layer's forward, counted as in engine.h
  Numbers elementwise_backward_gbps;
  double optimizer_gbps = 0;  // optimizer traffic; 0: the memory rate
  Numbers link_kb;            // size of a message between neighbours, 1e3 bytes
  Numbers link_us;            // time of that message

  const Numbers& forward_rates(bool f32) const { return f32 ? f32_matrix_tflops : matrix_tflops; }
  const Numbers& input_rates(bool f32) const;
  const Numbers& weight_rates(bool f32) const;
};

struct Hardware {
  Device device;
  Efficiency efficiency;
  Kernels kernels;
  Node node;
  Network network;
  Measured measured;

  bool f32() const { return device.peak == "f32"; }  // the training precision
  double peak() const { return (f32() ? device.f32_tflops : device.bf16_tflops) * 1e12; }
  double number_bytes() const { return f32() ? 4 : 2; }  // per weight or activation
  double memory_rate() const { return device.memory_gbps * 1e9 * efficiency.memory; }
  double link_rate() const { return node.link_gbps * 1e9 * node.link_efficiency; }
  double network_rate() const { return network.gbps_per_gpu * 1e9 * network.efficiency; }
  // Bytes/s of a device's offload copies, each way, while all of `ranks` devices that are in its node copy
  // both ways; disk_rate() for copies to and from disk, 0 if unknown.
  double copy_rate(std::int64_t ranks) const;
  double disk_rate(std::int64_t ranks) const;
  double usable_bytes() const { return (device.memory_gb - device.reserved_gb) * 1e9; }
  double straggling(std::int64_t ranks) const;  // share that the wait for the slowest node adds to a step
};

// The hardware assumed without a file: one core with products at 100 GFLOP/s, attention at 50 both ways,
// 5 GB/s between any two devices, 2 GB/s for offloading; all else takes no time.
Hardware assumed_hardware();

// The table that reads, prints and documents a hardware file.
void describe(Hardware& hardware, OptionTable& table);

// Returns the speeds and efficiencies for which the analytic model uses defaults, because they are not among
// the `given` keys and no measured table replaces them: "efficiency.attention = 0.5", ...
Words assumed_speeds(const Hardware& hardware, const Words& given);

// Checks what the option table's ranges cannot: required rates, ascending curves of equal length, memory
// above the reserved part. Throws InputError that begins with `origin` and names the key.
void validate(const Hardware& hardware, std::string_view origin);

}  // namespace penstock::sim
