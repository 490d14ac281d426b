// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/megatron.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "base/whole.h"

namespace penstock::plan {
namespace {

void require_one_of(const std::string& name, const std::string& value,
                    const std::vector<std::string>& values) {
  if (std::ranges::find(values, value) != values.end()) return;
  std::vector<std::string> shown;
  std::ranges::copy_if(values, std::back_inserter(shown),
                       [](const std::string& one) { return !one.empty(); });
  throw InputError(name + " " + printable(value) + " is not predicted; expected " + join(shown, " or "));
}

void require_predicted_arguments(const MegatronArguments& given) {
  require(given.has("--bf16") || given.has("--fp16"),
          "--bf16 is missing: Megatron-LM trains in f32 without it, which is not predicted");
  require_one_of("--position-embedding-type", given.word("--position-embedding-type", "learned_absolute"),
                 {"learned_absolute", "rope", "yarn", "mrope", "relative", "none"});
  require_one_of("--normalization", given.word("--normalization", "LayerNorm"), {"LayerNorm", "RMSNorm"});
  require_one_of("--optimizer", given.word("--optimizer", "adam"), {"adam"});
  require_one_of("--transformer-impl", given.word("--transformer-impl", "transformer_engine"),
                 {"transformer_engine"});
}

// Includes defaults that differ from what is predicted.
Words not_counted(const MegatronArguments& given) {
  Words told = given.not_counted();
  for (const char* name : {"--attention-dropout", "--hidden-dropout"}) {
    if (given.number(name, 0.1) > 0)
      told.push_back(std::string(name) + " " + given.word(name, "0.1") +
                     (given.has(name) ? "" : " (its default)") + ": masks of dropout; predicted with 0");
  }
  const std::string positions = given.word("--position-embedding-type", "learned_absolute");
  if (positions != "rope" && !given.has("--use-rotary-position-embeddings"))
    told.push_back("--position-embedding-type " + positions +
                   (given.has("--position-embedding-type") ? "" : " (its default)") +
                   (positions == "learned_absolute" ? ": a table of positions" : "") +
                   "; predicted with rope");
  if (!given.has("--disable-bias-linear"))
    told.push_back("without --disable-bias-linear: biases of the products; predicted without");
  if (const std::string norm = given.word("--normalization", "LayerNorm"); norm != "RMSNorm")
    told.push_back("--normalization " + printable(norm) +
                   (given.has("--normalization") ? "" : " (its default)") + ": predicted with RMSNorm");
  if (given.number("--rotary-percent", 1) < 1)
    told.push_back("--rotary-percent " + given.word("--rotary-percent", "") +
                   ": predicted with whole heads rotated");
  if (const std::int64_t unit = given.integer("--make-vocab-size-divisible-by", 128); unit != 128)
    told.push_back("--make-vocab-size-divisible-by " + std::to_string(unit) +
                   ": the vocabulary is predicted padded to a multiple of 128 times the tensor ranks");
  if (given.has("--fp16") && !given.has("--accumulate-allreduce-grads-in-fp32"))
    told.push_back(
        "--fp16 without --accumulate-allreduce-grads-in-fp32: gradients in 16 bits; predicted with 32");
  if (given.integer("--expert-model-parallel-size", 1) > 1 &&
      given.word("--moe-token-dispatcher-type", "allgather") != "alltoall")
    told.push_back("--moe-token-dispatcher-type allgather" +
                   std::string(given.has("--moe-token-dispatcher-type") ? "" : " (its default)") +
                   ": predicted with alltoall");
  return told;
}

// The trainer's own asserts, in its words.
void require_consistent(const MegatronArguments& given) {
  require(!(given.has("--fp16") && given.has("--bf16")), "--fp16 and --bf16 are both given; keep one");
  require(!given.has("--tp-comm-overlap") || given.has("--sequence-parallel"),
          "--tp-comm-overlap: tensor parallel communication/GEMM overlap can happen only when "
          "--sequence-parallel "
          "is given");
  require(!given.has("--overlap-param-gather") ||
              (given.has("--use-distributed-optimizer") && given.has("--overlap-grad-reduce")),
          "--overlap-param-gather needs --use-distributed-optimizer and --overlap-grad-reduce");
  require(!given.has("--num-query-groups") || given.has("--group-query-attention"),
          "--num-query-groups has no effect without --group-query-attention");
  require(!(given.has("--train-iters") && given.has("--train-samples")),
          "--train-iters and --train-samples are both given; keep one");
  require(given.integer("--max-position-embeddings", given.needed("--seq-length")) >=
              given.needed("--seq-length"),
          "--max-position-embeddings " + given.word("--max-position-embeddings", "") +
              " is less than --seq-length " + given.word("--seq-length", ""));
  require(!given.has("--recompute-activations") ||
              given.word("--recompute-granularity", "selective") == "selective",
          "--recompute-activations sets --recompute-granularity to selective; leave one of them out");
  require_predicted_arguments(given);
}

// Reads which records are recomputed.
void read_recomputation(const MegatronArguments& given, Beyond& beyond) {
  const std::string granularity =
      given.word("--recompute-granularity", given.has("--recompute-activations") ? "selective" : "");
  const std::string method = given.word("--recompute-method", "");
  require_one_of("--recompute-granularity", granularity, {"", "full", "selective"});
  require_one_of("--recompute-method", method, {"", "uniform", "block"});
  require(granularity == "full" || method.empty(),
          granularity == "selective"
              ? "recompute method is not yet supported for selective recomputing granularity"
              : "--recompute-method needs --recompute-granularity full");
  require(granularity != "full" || !method.empty(),
          "--recompute-granularity full needs --recompute-method uniform or block");
  if (granularity == "selective") beyond.recomputed = Recomputed::Scores;
  if (method == "block") {
    beyond.recomputed = Recomputed::FirstOfStage;
    beyond.every = given.needed("--recompute-num-layers");
  }
  require(
      method != "uniform" || given.integer("--recompute-num-layers", 1) == 1,
      "--recompute-method uniform with --recompute-num-layers " + given.word("--recompute-num-layers", "1") +
          " is not predicted: records of several layers at a time; expected 1, or --recompute-method block");
}

void require_divisible(const std::string& whole, std::int64_t size, const std::string& part,
                       std::int64_t parts) {
  require(size % parts == 0,
          whole + " " + std::to_string(size) + " is not divisible by " + part + " " + std::to_string(parts));
}

void require_model(const MegatronArguments& given, const model::Shape& shape) {
  if (shape.head_size == 0)
    require_divisible("--hidden-size", shape.hidden, "--num-attention-heads", shape.heads);
  if (given.has("--group-query-attention"))
    require_divisible("--num-attention-heads", shape.heads, "--num-query-groups", shape.kv_heads);
  require(shape.experts_per_token <= shape.experts,
          "--moe-router-topk " + std::to_string(shape.experts_per_token) + " is more than --num-experts " +
              std::to_string(shape.experts));
}

void require_ranks(const PlanOptions& options) {
  const model::Shape& shape = options.model.shape;
  const PlanOptions::LayoutKeys& layout = options.layout;
  const std::string tensor = "--tensor-model-parallel-size";
  require_divisible("--num-attention-heads", shape.heads, tensor, layout.tp);
  if (shape.kv_heads < shape.heads)
    require_divisible("--num-query-groups", shape.kv_heads, tensor, layout.tp);
  require(layout.pp <= shape.layers, "--pipeline-model-parallel-size " + std::to_string(layout.pp) +
                                         " is more than --num-layers " + std::to_string(shape.layers));
  const std::int64_t tokens = options.workload.seq_len;
  if (layout.cp > 1)  // each context rank has two pieces of a sequence
    require_divisible("--seq-length", tokens, "twice --context-parallel-size,", 2 * layout.cp);
  require_divisible("--seq-length", tokens, tensor + " times --context-parallel-size,",
                    layout.tp * layout.cp);
}

void read_model(const MegatronArguments& given, model::Shape& shape) {
  shape.layers = given.needed("--num-layers");
  shape.hidden = given.needed("--hidden-size");
  shape.heads = given.needed("--num-attention-heads");
  shape.kv_heads =
      given.has("--group-query-attention") ? given.integer("--num-query-groups", 1) : shape.heads;
  require(given.has("--swiglu"), "--swiglu is missing; models with another MLP are not predicted from flags");
  constexpr std::int64_t kUnit = 64;  // Megatron-LM rounds two thirds of 4·hidden down to it
  shape.ffn = given.integer("--ffn-hidden-size", 8 * shape.hidden / 3 / kUnit * kUnit);
  shape.head_size = given.has("--kv-channels") ? given.integer("--kv-channels", 1) : 0;
  shape.head_norms = given.has("--qk-layernorm");
  shape.vocab = given.needed("--vocab-size");
  shape.tied_embeddings = !given.has("--untie-embeddings-and-output-weights");
  shape.experts = given.integer("--num-experts", 1);
  shape.experts_per_token = shape.experts > 1 ? given.integer("--moe-router-topk", 2) : 1;
}

void require_experts(const MegatronArguments& given, const model::Shape& shape, std::int64_t ep,
                     std::int64_t replicas) {
  require(
      shape.experts == 1 || given.has("--sequence-parallel") ||
          given.integer("--tensor-model-parallel-size", 1) == 1,
      "When using MoE and tensor parallelism, sequence parallelism must be used; give --sequence-parallel");
  if (ep == 1) return;
  require(given.has("--num-experts"), "num_experts must be non None to use expert model parallelism");
  require(shape.experts % ep == 0, "Number of experts should be a multiple of expert model parallel_size: " +
                                       std::to_string(shape.experts) + " over " + std::to_string(ep));
  require(!given.has("--fp16"), "Expert parallelism is not supported with fp16 training");
  require_divisible("data-parallel size times --context-parallel-size,", replicas,
                    "--expert-model-parallel-size", ep);
}

// Stages per device.
std::int64_t chunks_of(const MegatronArguments& given, std::int64_t layers, std::int64_t pp) {
  if (!given.has("--num-layers-per-virtual-pipeline-stage")) return 1;
  require(pp > 2,
          "--num-layers-per-virtual-pipeline-stage: pipeline-model-parallel size should be greater than 2 "
          "with interleaved schedule, got " +
              std::to_string(pp));
  const std::int64_t per_stage = given.needed("--num-layers-per-virtual-pipeline-stage");
  require(layers % pp == 0 && layers / pp % per_stage == 0,
          "--num-layers-per-virtual-pipeline-stage " + std::to_string(per_stage) +
              ": number of layers per pipeline stage must be divisible by it; --num-layers " +
              std::to_string(layers) + " over --pipeline-model-parallel-size " + std::to_string(pp) + " is " +
              number(static_cast<double>(layers) / static_cast<double>(pp), 2));
  return layers / pp / per_stage;
}

Settings model_settings(const Workload& workload) {
  const model::Shape& shape = workload.model.shape;
  Settings settings;
  const auto add = [&](const char* name, std::int64_t value) {
    settings.push_back({name, std::to_string(value)});
  };
  add("--num-layers", shape.layers);
  add("--hidden-size", shape.hidden);
  add("--ffn-hidden-size", shape.ffn);
  add("--num-attention-heads", shape.heads);
  if (shape.kv_heads != shape.heads) {
    settings.push_back({"--group-query-attention", ""});
    add("--num-query-groups", shape.kv_heads);
  }
  add("--vocab-size", shape.vocab);
  add("--seq-length", workload.seq_len);
  add("--max-position-embeddings", workload.seq_len);
  settings.push_back({"--position-embedding-type", "rope"});
  settings.push_back({"--normalization", "RMSNorm"});
  settings.push_back({"--norm-epsilon", exact_number(shape.norm_epsilon)});
  for (const char* name :
       {"--swiglu", "--disable-bias-linear", "--use-mcore-models", "--use-flash-attn", "--bf16"})
    settings.push_back({name, ""});
  add("--attention-dropout", 0);
  add("--hidden-dropout", 0);
  if (shape.head_size > 0) add("--kv-channels", shape.head_size);
  if (shape.head_norms) settings.push_back({"--qk-layernorm", ""});
  if (!shape.tied_embeddings) settings.push_back({"--untie-embeddings-and-output-weights", ""});
  if (shape.experts > 1) {
    add("--num-experts", shape.experts);
    add("--moe-router-topk", shape.experts_per_token);
    settings.push_back({"--moe-token-dispatcher-type", "alltoall"});
    settings.push_back({"--moe-grouped-gemm", ""});
  }
  return settings;
}

}  // namespace

Settings megatron_settings(const Workload& workload, const Layout& layout) {
  Settings settings = model_settings(workload);
  const auto add = [&](const char* name, std::int64_t value) {
    settings.push_back({name, std::to_string(value)});
  };
  if (workload.model.shape.experts > 1) add("--expert-model-parallel-size", layout.mesh.expert);
  add("--micro-batch-size", layout.micro_batch);
  add("--global-batch-size", workload.global_batch);
  add("--tensor-model-parallel-size", layout.mesh.tensor);
  if (layout.mesh.tensor > 1 && !layout.whole_hidden) settings.push_back({"--sequence-parallel", ""});
  add("--context-parallel-size", layout.mesh.context);
  add("--pipeline-model-parallel-size", layout.mesh.pipeline);
  if (layout.chunks > 1)
    add("--num-layers-per-virtual-pipeline-stage", workload.model.shape.layers / stages_of(layout));
  if (layout.sharded.group != 1) settings.push_back({"--use-distributed-optimizer", ""});
  if (layout.keep == model::keep_of(model::Policy::Full)) {
    settings.push_back({"--recompute-granularity", "full"});
    settings.push_back({"--recompute-method", layout.recomputed == 1 ? "uniform" : "block"});
    const double layers = layout.recomputed * static_cast<double>(chunk_layers(workload, layout));
    add("--recompute-num-layers", layout.recomputed == 1 ? 1 : std::llround(layers));
  } else if (layout.recompute_scores) {
    settings.push_back({"--recompute-granularity", "selective"});
  }
  return settings;
}

std::string print_megatron(const Settings& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    text += settings[i].name + (settings[i].value.empty() ? "" : " " + settings[i].value);
    text += i + 1 < settings.size() ? " \\\n" : "\n";
  }
  return text;
}

Beyond read_megatron(const MegatronArguments& given, PlanOptions& options) {
  require_consistent(given);
  read_model(given, options.model.shape);
  require_model(given, options.model.shape);
  options.workload.seq_len = given.needed("--seq-length");
  PlanOptions::LayoutKeys& layout = options.layout;
  layout.tp = given.integer("--tensor-model-parallel-size", 1);
  layout.cp = given.integer("--context-parallel-size", 1);
  layout.pp = given.integer("--pipeline-model-parallel-size", 1);
  layout.ep = given.integer("--expert-model-parallel-size", 1);
  layout.micro_batch = given.needed("--micro-batch-size");
  const std::int64_t world = options.cluster.gpus,
                     ranks = product_within(world, {layout.tp, layout.cp, layout.pp});
  require(world % ranks == 0, "world size (" + std::to_string(world) +
                                  ") is not divisible by tensor parallel size (" + std::to_string(layout.tp) +
                                  ") times pipeline parallel size (" + std::to_string(layout.pp) +
                                  ") times context parallel size (" + std::to_string(layout.cp) + ")");
  const std::int64_t step = layout.micro_batch * (world / ranks);
  options.workload.global_batch = given.integer("--global-batch-size", step);
  require(options.workload.global_batch % step == 0,
          "--global-batch-size " + std::to_string(options.workload.global_batch) +
              " is not divisible by --micro-batch-size times data-parallel size, " + std::to_string(step));
  require_ranks(options);
  require_experts(given, options.model.shape, layout.ep, world / ranks * layout.cp);
  layout.chunks = chunks_of(given, options.model.shape.layers, layout.pp);
  if (given.has("--num-layers-per-virtual-pipeline-stage")) {
    const std::int64_t micro_batches = options.workload.global_batch / step;
    require(micro_batches % layout.pp == 0,
            "number of microbatches (" + std::to_string(micro_batches) +
                ") is not divisible by pipeline-model-parallel-size=" + std::to_string(layout.pp) +
                " when using interleaved schedule");
  }
  layout.schedule = layout.chunks > 1 ? "interleaved" : "1f1b";
  layout.policy = given.word("--recompute-granularity", "") == "full" ? "full" : "none";
  Beyond beyond;
  beyond.whole_hidden = layout.tp > 1 && !given.has("--sequence-parallel");
  beyond.whole_states = !given.has("--use-distributed-optimizer");
  beyond.looped_experts = options.model.shape.experts > 1 && !given.has("--moe-grouped-gemm");
  beyond.not_counted = not_counted(given);
  read_recomputation(given, beyond);
  return beyond;
}

}  // namespace penstock::plan
