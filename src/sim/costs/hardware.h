// SPDX-License-Identifier: Apache-2.0
// A kind of machine and the cluster built of it: what a hardware file (hardware/*.toml) says. Units are in
// the names: tflops 1e12 FLOP/s, gbps 1e9 bytes/s, gb 1e9 bytes. Rates are the vendor's; what is achieved of
// them are efficiencies, properties of the machine with its libraries, each with its source in the file.
#pragma once

#include <string>

#include "base/options.h"
#include "base/units.h"

namespace penstock::sim {

struct Device {
  std::string name = "unnamed";
  std::string backend = "cpu";  // what computes there, as train.device has it
  Words published_as;           // how tables of published runs call it: beginnings
  std::string peak = "bf16";    // which rate MFU refers to
  double bf16_tflops = 0;       // dense matrix products
  double f32_tflops = 0;
  double memory_gb = 0;
  double reserved_gb = 0;  // out of a trainer's reach: context, communication buffers, holes between blocks
  double memory_gbps = 0;
};

struct Efficiency {
  double matrix = 0.8;          // of the peak rate, for large matrix products
  double matrix_traffic = 0.4;  // share of a product's memory traffic that its arithmetic does not hide
  double attention = 0.5;       // of the peak rate, flash attention forward
  double attention_cudnn = 0;   // ... by cuDNN's kernels, and by Triton's; 0: as attention
  double attention_triton = 0;
  double attention_fa3 = 0;   // ... by FlashAttention 3's; 0: as cuDNN's, whose published rates are like them
  double attention_half = 0;  // tokens of a sequence at which half of those rates is reached
  double narrow_heads = 1;    // of those rates, with heads of 64 numbers or fewer
  double odd_heads = 1;       // of plain_attention, with heads whose size is no multiple of 8
  double attention_backward = 0.85;  // relative to forward
  double plain_attention = 0.4;  // of the peak rate, batched products of attention with its scores in memory
  double memory = 0.9;           // of the memory rate, for elementwise work
  double tensor_exposed =
      0.4;  // share of tensor-parallel traffic not hidden behind the products it overlaps with
  double pipeline_exposed =
      1.0;  // of transfers between stages that wait for each other: times their bare duration
};

struct Kernels {
  std::string attention = "fa2";  // whose attention rates the file has: FlashAttention 2's or cuDNN's
  double gap_us = 4;              // between two kernels
  double layer_dispatch_ms = 0;   // least time in which the host issues a layer's forward
  double step_ms = 0;             // fixed time of a step
};

struct Node {
  std::int64_t gpus = 8;
  double link_gbps = 0;  // per GPU and direction, between GPUs of the node
  double link_efficiency = 0.8;
  double link_latency_us = 5;  // of one step of a ring
  double host_link_gbps = 0;   // per GPU and direction
  double host_link_efficiency = 0.8;
  double host_memory_gb = 0;
  double host_memory_gbps = 0;  // shared by all copies of the node
  double disk_gbps = 0;         // of files of offloaded records, shared likewise; 0: not known
};

struct Network {
  double gbps_per_gpu = 0;  // the GPU's share of the node's network, per direction
  double efficiency = 0.9;
  double gradient_efficiency = 0.8;  // in the sums of gradients over data-parallel groups
  double pair_efficiency = 1;        // in those of groups with two members on a node: of both links; 0.5: one
  double latency_us = 20;
  double straggle = 0;  // of a step, waiting for the slowest node: its share for each doubling of the nodes
};

// Measured tables (penstock profile writes them); where given they replace the efficiency of the same name.
// Positions ascend. Lists of rates that are left empty follow the forward's. A table of products has a row of
// rates for each number of tokens, one row after the other.
struct Measured {
  Numbers matrix_tokens;         // m of a product [m, k] x [k, n]
  Numbers matrix_width;          // sqrt(k·n)
  Numbers matrix_tflops;         // of a forward's product in bf16
  Numbers matrix_input_tflops;   // of the backward's, for the gradient of its input
  Numbers matrix_weight_tflops;  // ... of its weights
  Numbers f32_matrix_tflops;     // the same three in f32
  Numbers f32_matrix_input_tflops;
  Numbers f32_matrix_weight_tflops;
  Numbers attention_tokens;  // queries of a call; it has as many own keys
  Numbers attention_tflops;  // of a slice over its own keys: causal, half of the products counted
  Numbers attention_backward_tflops;
  // Of a slice over the keys of an earlier one; on a card over as many earlier keys as one of its calls goes
  // over, of several slices where they are short (model/joined_keys.h).
  Numbers earlier_attention_tflops;
  Numbers earlier_attention_backward_tflops;
  Numbers elementwise_mb;    // of one hidden state, 1e6 bytes
  Numbers elementwise_gbps;  // through a layer's forward, as the passes are counted in engine.h
  Numbers elementwise_backward_gbps;
  double optimizer_gbps = 0;  // through the optimizer; 0: the memory's rate
  Numbers link_kb;            // of a message between neighbours, 1e3 bytes
  Numbers link_us;            // its time

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

  bool f32() const { return device.peak == "f32"; }  // what is trained in
  double peak() const { return (f32() ? device.f32_tflops : device.bf16_tflops) * 1e12; }
  double number_bytes() const { return f32() ? 4 : 2; }  // of a weight or an activation
  double memory_rate() const { return device.memory_gbps * 1e9 * efficiency.memory; }
  double link_rate() const { return node.link_gbps * 1e9 * node.link_efficiency; }
  double network_rate() const { return network.gbps_per_gpu * 1e9 * network.efficiency; }
  // Of a device's offloading copies, each way, while all of its node copy both ways; to and from a disk: 0
  // when that is not known.
  double copy_rate() const;
  double disk_rate() const;
  double usable_bytes() const { return (device.memory_gb - device.reserved_gb) * 1e9; }
  double straggling(std::int64_t ranks) const;  // what waiting for the slowest node adds to a step: its share
};

// What is assumed of a machine without a file: one core's products at 100 GFLOP/s, attention at 50 both ways,
// 5 GB/s between any two devices, 2 GB/s for offloading; all else is free.
Hardware assumed_hardware();

// The table that reads, prints and documents a hardware file.
void describe(Hardware& hardware, OptionTable& table);

// Speeds and efficiencies that the analytic model takes from their defaults, since they are not among the
// `given` keys and no measured table takes their place: "efficiency.attention = 0.5", ...
Words assumed_speeds(const Hardware& hardware, const Words& given);

// What the table's ranges cannot say: rates that must be given, curves of equal length that ascend, memory
// beyond what is reserved. Throws InputError that begins with `origin` and names the key.
void validate(const Hardware& hardware, std::string_view origin);

}  // namespace penstock::sim
