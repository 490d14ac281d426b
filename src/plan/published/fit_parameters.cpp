// SPDX-License-Identifier: Apache-2.0
// The constants of the fit: machines first, then engines.
#include "plan/published/reference_fit.h"

namespace penstock::plan {
namespace {

using Names = std::vector<std::string>;
using FitParameters = std::vector<FitParameter>;

const Names kH800{"h800"}, kA800{"a800"}, kA100{"a100", "a100-vtrain"}, kVtrain{"a100-vtrain"},
    kAmpere{"a100", "a100-vtrain", "a800"};

// The machines of atc24_throughput, calculon_cases and vtrain_multi_node.
FitParameters earlier_machines() {
  return {
      {kH800, "efficiency", "matrix", 0.65, 0.10, 0.40, 0.85},
      {kH800, "efficiency", "matrix_traffic", 0.40, 0.25, 0.0, 1.0},
      {kH800, "efficiency", "attention", 0.42, 0.08, 0.25, 0.70},
      {kH800, "efficiency", "memory", 0.85, 0.10, 0.50, 0.92},
      {{"kwai"}, "tensor", "exposed", 0.30, 0.30, 0.0, 1.0, true},
      {kH800, "efficiency", "pipeline_exposed", 0.80, 0.40, 0.0, 1.5},
      {kH800, "network", "efficiency", 0.85, 0.10, 0.50, 0.97},
      {kH800, "network", "gradient_efficiency", 0.85, 0.10, 0.50, 0.97},
      {kH800, "kernels", "gap_us", 4.0, 2.0, 0.0, 10.0},
      {kA800, "efficiency", "matrix", 0.82, 0.08, 0.50, 0.95},
      {kA800, "efficiency", "attention", 0.55, 0.08, 0.35, 0.75},
      {kA100, "efficiency", "matrix", 0.82, 0.06, 0.50, 0.95},
      {kA100, "efficiency", "plain_attention", 0.50, 0.15, 0.15, 0.90},
      {kAmpere, "efficiency", "matrix_traffic", 0.40, 0.25, 0.0, 1.0},
      {kAmpere, "efficiency", "memory", 0.85, 0.10, 0.50, 0.92},
      {kAmpere, "kernels", "gap_us", 5.0, 4.0, 0.0, 15.0},
      {{"megatron-2022", "megatron-deepspeed"}, "pipeline", "exposed", 1.0, 0.5, 0.0, 3.0, true},
      {kA100, "network", "efficiency", 0.85, 0.10, 0.50, 0.97},
      {kA100, "network", "gradient_efficiency", 0.80, 0.10, 0.40, 0.97},
      {kVtrain, "network", "pair_efficiency", 0.75, 0.25, 0.5, 1.0},
  };
}

FitParameter centre(const char* section, const char* key, const char* name, double guess, double spread,
                    double low, double high) {
  return {{}, section, key, guess, spread, low, high, false, {}, name};
}

// The machines of the throughput tables. All clusters with a chip share its constants; network constants are
// per cluster.
void append_machines(FitParameters& all) {
  const Names hopper{"dgx-h100", "dgx-h200", "h100-800g", "h100-hbm2e", "h200-kempner", "h800-xtuner"};
  const Names ampere{"a100-hdr",       "a100-roce", "a100-40gb", "jean-zay",
                     "a100-internevo", "selene",    "a100-400g"};
  all.push_back(centre("efficiency", "matrix", "Hopper", 0.68, 0.10, 0.40, 0.95));
  all.push_back(centre("efficiency", "matrix", "Ampere", 0.82, 0.06, 0.50, 0.95));
  all.push_back(centre("network", "efficiency", "clusters", 0.75, 0.15, 0.25, 0.97));
  const auto matrix = [&](Names files, const char* name, double guess) {
    all.push_back({std::move(files), "efficiency", "matrix", guess, 0.10, 0.40, 0.97, false, {}, name});
  };
  matrix({"dgx-h100", "dgx-h200", "h100-800g"}, "Hopper", 0.68);
  matrix({"h100-hbm2e"}, "Hopper", 0.68);
  matrix({"h200-kempner"}, "Hopper", 0.68);
  matrix({"h800-xtuner"}, "Hopper", 0.68);
  matrix({"a100-hdr", "a100-roce", "jean-zay", "a100-internevo", "selene", "a100-400g"}, "Ampere", 0.82);
  matrix({"a100-40gb"}, "Ampere", 0.82);
  for (const Names& files : {hopper, ampere}) {
    all.push_back({files, "efficiency", "matrix_traffic", 0.30, 0.25, 0.0, 1.0});
    all.push_back({files, "efficiency", "memory", 0.85, 0.10, 0.50, 0.95});
    all.push_back({files, "network", "straggle", 0.005, 0.005, 0.0, 0.05});
  }
  all.push_back({hopper, "efficiency", "attention", 0.45, 0.12, 0.20, 0.75});
  all.push_back(
      {{"a100-hdr", "a100-internevo", "a100-400g"}, "efficiency", "attention", 0.60, 0.12, 0.20, 0.75});
  all.push_back({ampere, "kernels", "gap_us", 5.0, 4.0, 0.0, 15.0});
  all.push_back({hopper, "efficiency", "attention_cudnn", 0.60, 0.12, 0.30, 0.80});
  all.push_back({{"dgx-h100"}, "efficiency", "attention_triton", 0.30, 0.12, 0.10, 0.70});
  all.push_back({{"a100-roce", "a100-40gb"}, "efficiency", "attention_triton", 0.45, 0.12, 0.10, 0.70});
  all.push_back({{"selene"}, "efficiency", "attention_cudnn", 0.45, 0.12, 0.10, 0.75});
  all.push_back({{"jean-zay", "selene"}, "efficiency", "plain_attention", 0.35, 0.12, 0.15, 0.90});
  all.push_back({{"jean-zay"}, "efficiency", "odd_heads", 0.30, 0.20, 0.05, 1.0});
  for (const Names& names : {hopper, ampere}) {
    for (const std::string& name : names) {
      all.push_back(
          {{name}, "network", "efficiency", 0.75, 0.25, 0.25, 1.0, false, "gradient_efficiency", "clusters"});
    }
  }
}

struct EngineConstant {
  const char *section, *key;
  double plain, fused;  // guesses for the two classes
  double spread, low, high;
};
constexpr EngineConstant kTensor{"tensor", "exposed", 0.8, 0.5, 0.3, 0.0, 1.5};
constexpr EngineConstant kGradients{"gradients", "exposed", 0.6, 0.2, 0.3, 0.0, 1.5};
constexpr EngineConstant kElementwise{"elementwise", "factor", 2.0, 1.3, 0.7, 0.3, 4.0};
constexpr EngineConstant kLayer{"host", "layer_ms", 1.0, 0.2, 0.8, 0.0, 5.0};
constexpr EngineConstant kStep{"host", "step_ms", 30.0, 10.0, 60.0, 0.0, 400.0};
constexpr EngineConstant kWaits{"pipeline", "waits", 0.03, 0.02, 0.05, 0.0, 0.3};
constexpr EngineConstant kExpertLayer{"experts", "layer_ms", 3.0, 3.0, 2.0, 0.0, 12.0};
constexpr EngineConstant kExpertTraffic{"experts", "exposed", 1.0, 1.0, 0.7, 0.0, 4.0};
constexpr EngineConstant kCompiled{"elementwise", "compiled", 0.5, 0.5, 0.2, 0.1, 1.0};

const char* class_name(bool fused) { return fused ? "fused engines" : "plain engines"; }

// The constants of these files; without files, the centre of the class.
void append_engine(FitParameters& all, const Names& files, bool fused,
                   std::initializer_list<EngineConstant> constants) {
  for (const EngineConstant& constant : constants) {
    all.push_back({files,
                   constant.section,
                   constant.key,
                   fused ? constant.fused : constant.plain,
                   constant.spread,
                   constant.low,
                   constant.high,
                   true,
                   {},
                   class_name(fused)});
  }
}

// Two classes: engines with fused kernels and overlapped traffic, and the others.
void append_engines(FitParameters& all) {
  for (const bool fused : {false, true})
    append_engine(all, {}, fused,
                  {kTensor, kGradients, kElementwise, kLayer, kStep, kWaits, kExpertLayer, kExpertTraffic});
  for (const char* name : {"megatron-2021", "bigscience", "aleph-alpha", "internevo", "nanotron"})
    append_engine(all, {name}, false, {kTensor, kGradients, kElementwise, kLayer, kStep, kWaits});
  append_engine(all, {"fsdp1", "fsdp1-compiled"}, false, {kGradients, kElementwise, kLayer, kStep});
  append_engine(all, {"fsdp2"}, false, {kTensor, kGradients, kElementwise, kLayer, kStep, kCompiled});
  append_engine(all, {"deepspeed"}, false, {kGradients, kElementwise, kLayer, kStep});
  append_engine(all, {"nemo"}, true,
                {kTensor, kGradients, kElementwise, kLayer, kExpertLayer, kExpertTraffic});
  append_engine(all, {"megatron-2025"}, true,
                {kTensor, kGradients, kElementwise, kLayer, kExpertLayer, kExpertTraffic});
  append_engine(all, {"maxtext"}, true, {kGradients, kElementwise, kLayer, kStep, kCompiled});
  append_engine(all, {"llmq"}, true, {kGradients, kElementwise, kLayer, kStep});
}

}  // namespace

const std::vector<FitParameter>& fit_parameters() {
  static const FitParameters parameters = [] {
    FitParameters all = earlier_machines();
    append_machines(all);
    append_engines(all);
    return all;
  }();
  return parameters;
}

}  // namespace penstock::plan
