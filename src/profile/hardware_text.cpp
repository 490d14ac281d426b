// SPDX-License-Identifier: Apache-2.0
#include "profile/hardware_text.h"

#include <algorithm>
#include <cmath>

#include "base/columns.h"
#include "base/text.h"
#include "profile/attention.h"
#include "profile/doubts.h"
#include "profile/memory_work.h"

namespace penstock::profile {
namespace {

constexpr double kNoisyShare = 0.05;   // share of disturbed repeats
constexpr double kNoisySpread = 0.10;  // mean interquartile range of a figure

// Four digits, never 0: rates must be positive.
std::string rounded(double value) {
  if (!(value > 0)) return "1e-09";
  const int digits = std::clamp(3 - static_cast<int>(std::floor(std::log10(value))), 0, 12);
  return exact_number(parse_number(number(value, digits)).value());
}

// A TOML float needs a point or an exponent.
std::string real(double value) {
  const std::string text = rounded(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string line(const std::string& key, const std::string& value, const std::string& comment) {
  return left_aligned(key + " = " + value + " ", 29) + "# " + comment + "\n";
}
std::string line(const std::string& key, double value, const std::string& comment) {
  return line(key, real(value), comment);
}

std::string list(const std::string& key, const Numbers& values, double unit) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(real(value / unit));
  return texts.empty() ? "" : key + " = [" + join(texts, ", ") + "]\n";
}

double greatest(const ProductRates& rates) {
  double most = 0;
  for (const Numbers* numbers : {&rates.forward, &rates.input, &rates.weight}) {
    for (const double rate : *numbers) most = std::max(most, rate);
  }
  return most;
}

std::string copy_of(const Measurements& measured) {
  return "copy of " + print_bytes(static_cast<Bytes>(measured.sizes.copy_bytes));
}

std::string heading(const MachineFacts& facts, const Measurements& measured) {
  const std::string elsewhere =
      facts.elsewhere > 0 ? " and " + std::to_string(facts.elsewhere) + " of other hosts" : std::string();
  std::string text = "# SPDX-License-Identifier: Apache-2.0\n# " + facts.description +
                     "; written by penstock profile with " + counted(facts.ranks, "rank") + elsewhere + " (" +
                     facts.transport + ")\n# of " + counted(facts.threads, "thread") +
                     ", all at work together. ";
  if (measured.once)
    return text + "Each figure was\n" + std::string(kMeasuredOnce) + " (--budget 0): enough to try things out.\n";
  text += "Figures are medians, and means over the ranks and two rounds. In " + percent(measured.disturbed) +
          " of the\n# repeats another program took the core, and the thread's processor time was "
          "taken; the middle half of the repeats\n# of a figure spreads over " +
          percent(measured.spread) + " of it on average.\n";
  if (!facts.gpu)
    text +=
        "# Computation is counted as if a product, timed beside each figure, had always taken its usual "
        "time,\n# except where that took more than four times as long.\n";
  if (measured.disturbed > kNoisyShare || measured.spread > kNoisySpread)
    text += std::string(kNoisy) +
            ": the machine was busy with other work; run penstock profile again when it is quiet.\n";
  return text;
}

std::string device_section(const std::string& name, const MachineFacts& facts, const Measurements& measured) {
  const bool f32 = measured.precision != model::Precision::BF16;
  const auto peak = [](const char* key, const ProductRates& rates, const char* comment) {
    return rates.forward.empty() ? std::string() : line(key, greatest(rates) / 1e12, comment);
  };
  constexpr double kMostReserved = 0.99;  // reserved_gb must stay below memory_gb
  const double memory = facts.memory_bytes / facts.sharers / 1e9;
  const double used = facts.used_bytes / facts.sharers / 1e9 + (facts.gpu ? 0 : 0.3);
  return "\n[device]                     # a rank\n" + line("name", json_quote(name), "as asked for") +
         line("backend", facts.gpu ? "\"cuda\"" : "\"cpu\"", "what computes") +
         line("peak", f32 ? "\"f32\"" : "\"bf16\"", "what was asked for, or what is fast here") +
         peak("bf16_tflops", measured.products, "the fastest product of the tables below") +
         peak("f32_tflops", measured.f32_products, "the same in f32") +
         line("memory_gb", memory,
              facts.gpu ? "this GPU's, over its ranks" : "this machine's, over the ranks") +
         line("reserved_gb", std::min(used, kMostReserved * memory),
              facts.gpu ? "in use when this was written, the program's own context among it"
                        : "in use before this was measured, over the ranks; 0.3 for program and libraries") +
         line("memory_gbps", measured.memory_rate / 1e9, copy_of(measured) + ", bytes read and written");
}

std::string efficiency_section(const Measurements& measured) {
  const double whole =
      greatest(measured.precision == model::Precision::BF16 ? measured.products : measured.f32_products);
  const AttentionRates& attention = measured.attention;
  return "\n[efficiency]\n" + line("matrix", 1.0, "see [measured]") +
         line("matrix_traffic", "0.0", "within the measured rates") +
         line("attention", std::min(1.0, attention.own.back() / whole), "see [measured]") +
         line("attention_backward", std::min(1.0, attention.own_backward.back() / attention.own.back()),
              "see [measured]") +
         line("memory", 1.0, "memory_gbps is what was reached") +
         line("tensor_exposed", 1.0, "nothing runs behind the products") +
         line("pipeline_exposed", 1.0, "transfers in the ramps take their measured time") + "\n[kernels]\n" +
         line("gap_us", 1e6 * measured.gap,
              "what whole layers took beyond the rates below, over their kernels") +
         line("step_ms", "0.0", "within the measured rates");
}

// One rank alone has no partner, and its messages no times.
bool has_messages(const Numbers& seconds) { return seconds.back() > 0; }

// Bytes/s from the smallest to the largest message; without messages the rate of copies.
double message_rate(const Measurements& measured, const Numbers& seconds) {
  const Numbers& kb = measured.sizes.message_kb;
  const double slope = seconds.back() - seconds.front();
  return slope > 0 ? 1e3 * (kb.back() - kb.front()) / slope : measured.copy_rate;
}

std::string network_section(const Measurements& measured) {
  const bool one = measured.network_seconds.empty();
  const Numbers& seconds = one ? measured.message_seconds : measured.network_seconds;
  const std::string latency =
      has_messages(seconds)
          ? line("latency_us", 1e6 * seconds.front(), one ? "the same" : "the smallest message between nodes")
          : "";
  return "\n[network]\n" +
         line("gbps_per_gpu", message_rate(measured, seconds) / 1e9,
              one ? "there is one node: as within it"
                  : "from the smallest to the largest message between nodes, all ranks at it") +
         line("efficiency", 1.0, one ? "the same" : "gbps_per_gpu is what was reached") +
         line("gradient_efficiency", 1.0, "the same") + latency;
}

std::string node_section(const MachineFacts& facts, const Measurements& measured) {
  const Numbers& seconds = measured.message_seconds;
  const DiskRates& disk = measured.disk;
  return "\n[node]\n" + line("gpus", std::to_string(facts.ranks), "ranks") +
         line("link_gbps", message_rate(measured, seconds) / 1e9,
              has_messages(seconds) ? "from the smallest to the largest message below"
                                    : "that of copies: one rank has no messages to measure") +
         line("link_efficiency", 1.0, "link_gbps is what was reached") +
         (has_messages(seconds) ? line("link_latency_us", 1e6 * seconds.front(), "the smallest message below")
                                : "") +
         line("host_link_gbps", measured.copy_rate / 1e9,
              copy_of(measured) + (facts.gpu ? " to pinned memory and one back at once, each way"
                                             : " within memory, all ranks at it: host and device are the "
                                               "same memory")) +
         line("host_link_efficiency", 1.0, "host_link_gbps is what was reached") +
         line("host_memory_gb", facts.host_bytes / 1e9, "this machine's") +
         line("host_memory_gbps",
              (facts.gpu ? 2 * measured.copy_rate : measured.memory_rate) * facts.ranks / 1e9,
              "the same copies, all ranks together") +
         (disk.unknown.empty() ? line("disk_gbps", std::min(disk.write, disk.read) / 1e9,
                                      "64 MiB: written and flushed at " + rounded(disk.write / 1e9) +
                                          ", read back without its pages at " + rounded(disk.read / 1e9))
                               : line("disk_gbps", "0.0", "not known: " + disk.unknown));
}

std::string products_part(const Measurements& measured) {
  const ProductRates& bf16 = measured.products;
  const ProductRates& f32 = measured.f32_products;
  return "# products of matrix_tokens rows with a matrix of matrix_width squared, a row of widths for each "
         "number "
         "of\n# tokens; operands take turns, so that caches do not hold them; the gradient of the weights "
         "added to an f32 "
         "sum\n" +
         list("matrix_tokens", measured.sizes.matrix_tokens, 1) +
         list("matrix_width", measured.sizes.matrix_width, 1) + list("matrix_tflops", bf16.forward, 1e12) +
         list("matrix_input_tflops", bf16.input, 1e12) + list("matrix_weight_tflops", bf16.weight, 1e12) +
         list("f32_matrix_tflops", f32.forward, 1e12) + list("f32_matrix_input_tflops", f32.input, 1e12) +
         list("f32_matrix_weight_tflops", f32.weight, 1e12);
}

std::string attention_part(const Measurements& measured) {
  const AttentionRates& rates = measured.attention;
  return "# one sequence, " + std::to_string(measured.sizes.attention_heads) + " heads of " +
         std::to_string(measured.sizes.head_size) +
         ", as many keys as queries, of earlier slices on a GPU as many as a call goes over; own keys are "
         "causal; merges and sums of gradients included\n" +
         list("attention_tokens", measured.sizes.attention_tokens, 1) +
         list("attention_tflops", rates.own, 1e12) +
         list("attention_backward_tflops", rates.own_backward, 1e12) +
         list("earlier_attention_tflops", rates.earlier, 1e12) +
         list("earlier_attention_backward_tflops", rates.earlier_backward, 1e12);
}

std::string rest_part(const Measurements& measured) {
  return "# norms, rotation, SwiGLU and residual sums of a layer with hidden " +
         std::to_string(measured.sizes.elementwise_hidden) + ", ffn " +
         std::to_string(measured.sizes.elementwise_ffn) + ", bytes as counted in src/sim/costs/engine.cpp\n" +
         list("elementwise_mb", measured.elementwise.bytes, 1e6) +
         list("elementwise_gbps", measured.elementwise.forward, 1e9) +
         list("elementwise_backward_gbps", measured.elementwise.backward, 1e9) +
         "# square sums, AdamW, bf16 weights anew and gradients zeroed, bytes as counted in "
         "src/sim/costs/engine.h\n" +
         line("optimizer_gbps", measured.optimizer_rate / 1e9, measured.optimizer_work) +
         (has_messages(measured.message_seconds)
              ? "# half of there and back between two ranks, median of 40\n" +
                    list("link_kb", measured.sizes.message_kb, 1) +
                    list("link_us", measured.message_seconds, 1e-6)
              : "");
}

}  // namespace

std::string hardware_text(const std::string& name, const MachineFacts& facts, const Measurements& measured) {
  return heading(facts, measured) + device_section(name, facts, measured) + efficiency_section(measured) +
         node_section(facts, measured) + network_section(measured) + "\n[measured]\n" +
         products_part(measured) + attention_part(measured) + rest_part(measured);
}

}  // namespace penstock::profile
