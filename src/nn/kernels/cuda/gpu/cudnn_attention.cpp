// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cuda/gpu/cudnn_attention.h"

#include <ATen/cudnn/Handle.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "nn/kernels/cuda/packed.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend expects its user to define it
}

namespace penstock::nn::kernels::cuda {
namespace {

namespace fe = cudnn_frontend;
using TensorOfGraph = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::int64_t kTile = 128;
constexpr std::int64_t kWidest = 128;      // largest head size of a backward on Hopper
constexpr std::int64_t kHeadsAtOnce = 32;  // query heads per call of a repeatable backward
constexpr std::size_t kMostPlans = 512;    // per thread

void require(fe::error_t status) {
  if (status.is_bad()) throw RunError("cuDNN: " + status.get_message());
}

// cuDNN is already loaded: LibTorch's CUDA library is linked with it.
void load_cudnn() {
  static const bool once = [] {
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", "libcudart.so.13", /*overwrite=*/0);
    fe::cudnn_dlhandle = dlopen("libcudnn.so.9", RTLD_NOW);
    if (!fe::cudnn_dlhandle) throw RunError(std::string("cuDNN cannot be loaded: ") + dlerror());
    return true;
  }();
  static_cast<void>(once);
}

// A graph whose operands are numbered by their index in the tensors passed to execute().
struct Plan {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;

  Plan() {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  TensorOfGraph input(std::int64_t number, const at::Tensor& x) {
    TensorOfGraph tensor = graph.tensor(fe::graph::Tensor_attributes());
    return placed(tensor, number, x);
  }
  static TensorOfGraph output(const TensorOfGraph& tensor, std::int64_t number, const at::Tensor& x) {
    tensor->set_output(true);
    return placed(tensor, number, x);
  }
  // Returns false if cuDNN does not support the graph on this GPU.
  bool build() {
    const fe::error_t status =
        graph.build(at::native::getCudnnHandle(), {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.code == fe::error_code_t::GRAPH_NOT_SUPPORTED) return false;
    require(status);
    require(graph.get_workspace_size(workspace));
    return true;
  }

 private:
  static TensorOfGraph placed(const TensorOfGraph& tensor, std::int64_t number, const at::Tensor& x) {
    tensor->set_uid(number)
        .set_dim(x.sizes().vec())
        .set_stride(x.strides().vec())
        .set_data_type(x.scalar_type() == at::kFloat ? fe::DataType_t::FLOAT : fe::DataType_t::BFLOAT16);
    return tensor;
  }
};

// Returns the plan for tensors of these sizes and strides; calls make(plan) to define it on first use. Null
// if cuDNN does not support it on this GPU. Documents may cut slices differently in every step, so the
// number of plans is limited: at the limit the thread drops all of them.
template <class Make>
Plan* plan_for(const std::vector<at::Tensor>& tensors, std::int64_t kind, Make&& make) {
  static thread_local std::map<std::vector<std::int64_t>, std::unique_ptr<Plan>> plans;
  std::vector<std::int64_t> key{kind};
  for (const at::Tensor& x : tensors) {
    key.insert(key.end(), x.sizes().begin(), x.sizes().end());
    key.insert(key.end(), x.strides().begin(), x.strides().end());
  }
  if (const auto known = plans.find(key); known != plans.end()) return known->second.get();
  if (plans.size() == kMostPlans) {
    C10_CUDA_CHECK(cudaDeviceSynchronize());  // some may be running
    plans.clear();
  }
  load_cudnn();
  auto made = std::make_unique<Plan>();
  make(*made);
  if (!made->build()) made.reset();
  return (plans[key] = std::move(made)).get();
}

// The operands' numbers are their indexes in `tensors`.
void execute(Plan& plan, const std::vector<at::Tensor>& tensors) {
  std::unordered_map<std::int64_t, void*> addresses;
  for (const at::Tensor& x : tensors)
    addresses.emplace(static_cast<std::int64_t>(addresses.size()), const_cast<void*>(x.const_data_ptr()));
  const at::Tensor workspace =
      at::empty({std::max<std::int64_t>(plan.workspace, 1)}, tensors.front().options().dtype(at::kByte));
  require(plan.graph.execute(at::native::getCudnnHandle(), addresses, workspace.mutable_data_ptr()));
}

float scale_of(const at::Tensor& query) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(query.size(3))));
}

// Returns false if cuDNN does not support it on this GPU.
bool backward(const std::vector<at::Tensor>& tensors, Mask mask, bool repeatable) {
  const bool causal = mask == Mask::Causal;
  Plan* const plan = plan_for(tensors, 1 + 2 * causal + 4 * repeatable, [&](Plan& made) {
    std::vector<TensorOfGraph> inputs;
    for (std::size_t i = 0; i < 6; ++i)
      inputs.push_back(made.input(static_cast<std::int64_t>(i), tensors[i]));
    auto options = fe::graph::SDPA_backward_attributes()
                       .set_attn_scale(scale_of(tensors[0]))
                       .set_deterministic_algorithm(repeatable);
    if (causal) options.set_causal_mask(true);
    const auto gradients =
        made.graph.sdpa_backward(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], options);
    for (std::size_t i = 0; i < 3; ++i)
      Plan::output(gradients[i], static_cast<std::int64_t>(6 + i), tensors[6 + i]);
  });
  if (plan) execute(*plan, tensors);
  return plan != nullptr;
}

}  // namespace

bool has_cudnn_attention(const at::Tensor& query, const at::Tensor& key) {
  int major = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, query.get_device()));
  constexpr int kHopper = 9;
  const bool whole = query.size(2) % kTile == 0 && key.size(2) % kTile == 0;
  return major >= kHopper && whole && query.size(3) % 8 == 0 && query.size(3) <= kWidest;
}

std::optional<AttentionPart> cudnn_attention(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value, Mask mask) {
  const bool causal = mask == Mask::Causal;
  const at::Tensor output = at::empty(query.sizes(), query.options());
  const at::Tensor log_sum_exp =
      at::empty({query.size(0), query.size(1), query.size(2), 1}, query.options().dtype(at::kFloat));
  const std::vector<at::Tensor> tensors{query, key, value, output, log_sum_exp};
  Plan* const plan = plan_for(tensors, 2 * causal, [&](Plan& made) {
    auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(scale_of(query));
    if (causal) options.set_causal_mask(true);
    const auto [of_output, of_sums] =
        made.graph.sdpa(made.input(0, query), made.input(1, key), made.input(2, value), options);
    Plan::output(of_output, 3, output);
    Plan::output(of_sums, 4, log_sum_exp);
  });
  if (!plan) return {};
  execute(*plan, tensors);
  return AttentionPart{output, log_sum_exp.squeeze(-1)};
}

std::optional<AttentionGradients> cudnn_attention_backward(const at::Tensor& grad_output,
                                                           const at::Tensor& query, const at::Tensor& key,
                                                           const at::Tensor& value,
                                                           const AttentionPart& merged, Mask mask,
                                                           bool repeatable) {
  const std::int64_t groups = key.size(1), of_group = query.size(1) / groups;
  const std::int64_t at_once = repeatable ? std::max<std::int64_t>(1, kHeadsAtOnce / of_group) : groups;
  const AttentionGradients gradients{at::empty(query.sizes(), query.options()),
                                     at::empty(key.sizes(), key.options()),
                                     at::empty(value.sizes(), value.options())};
  const at::Tensor log_sum_exp = merged.log_sum_exp.unsqueeze(-1);
  for (std::int64_t first = 0; first < groups; first += at_once) {
    const std::int64_t count = std::min(at_once, groups - first);
    const auto keys = [&](const at::Tensor& x) { return x.narrow(1, first, count); };
    const auto heads = [&](const at::Tensor& x) { return x.narrow(1, first * of_group, count * of_group); };
    // cuDNN before 9.26 ignores the strides of the log-sum-exp and reads it as packed.
    const bool done = backward(
        {heads(query), keys(key), keys(value), heads(merged.output), heads(grad_output),
         packed(heads(log_sum_exp)), heads(gradients.query), keys(gradients.key), keys(gradients.value)},
        mask, repeatable);
    if (!done) return {};
  }
  return gradients;
}

}  // namespace penstock::nn::kernels::cuda
