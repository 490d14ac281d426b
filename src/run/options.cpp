// SPDX-License-Identifier: Apache-2.0
#include "run/options.h"

#include <filesystem>

#include "base/option_text.h"
#include "files/option_file.h"
#include "files/run_files.h"

namespace penstock::run {
namespace {

// Limits far above any model, so that no product of two sizes overflows.
constexpr double kMostSteps = 1e12;

void describe_rope_scaling(model::RopeScaling& scaling, OptionTable& table) {
  const std::string_view section = "model";
  table.push_back({section, "rope_factor", &scaling.factor,
                   "Factor of llama3-type rotary scaling; 1: no scaling.", at_least(1)});
  table.push_back(
      {section, "rope_low_frequency_factor", &scaling.low_frequency_factor,
       "Scaling: wavelengths longer than rope_original_positions / this are stretched by rope_factor.",
       positive()});
  table.push_back({section, "rope_high_frequency_factor", &scaling.high_frequency_factor,
                   "Scaling: wavelengths shorter than rope_original_positions / this are unchanged.",
                   positive()});
  table.push_back({section, "rope_original_positions", &scaling.original_positions,
                   "Scaling: number of positions in the original training.", from_to(1, kMostTokens)});
}

void describe_experts(ModelOptions& options, OptionTable& table) {
  const std::string_view section = "model";
  const Constraint count = from_to(1, 65536);
  table.push_back(
      {section, "experts", &options.shape.experts, "Experts per layer; 1: a dense model.", count});
  table.push_back({section, "experts_per_token", &options.shape.experts_per_token,
                   "Experts that the router picks for each token.", count});
  table.push_back({section, "moe_ffn", &options.moe_ffn, "Width inside each expert; 0: same as ffn.",
                   from_to(0, kMostWidth)});
}

void describe_model(ModelOptions& options, OptionTable& table) {
  const std::string_view section = "model";
  model::Shape& shape = options.shape;
  const Constraint width = from_to(1, kMostWidth);
  table.push_back({section, "config", &options.config,
                   "A Hugging Face config.json, or its folder, instead of the shape keys below."});
  table.push_back({section, "weights", &options.weights,
                   "Initial weights: a safetensors file or a Hugging Face folder; empty: random, from "
                   "train.seed."});
  table.push_back({section, "layers", &shape.layers, "Decoder layers.", from_to(1, kMostLayers)});
  table.push_back({section, "hidden", &shape.hidden, "Width of the residual stream.", width});
  table.push_back({section, "ffn", &shape.ffn, "Width inside the feed-forward block.", width});
  table.push_back(
      {section, "heads", &shape.heads, "Query heads; must divide hidden unless head_size is given.", width});
  table.push_back({section, "kv_heads", &shape.kv_heads, "Key and value heads; must divide heads.", width,
                   "same as heads"});
  table.push_back({section, "vocab", &shape.vocab, "Rows of the embedding.", from_to(1, 1 << 24),
                   "259 with data.text; required with data.megatron"});
  table.push_back(
      {section, "tied_embeddings", &shape.tied_embeddings, "The output matrix is the embedding."});
  describe_details(shape, table);
  describe_experts(options, table);
  table.push_back(
      {section, "positions", &options.positions,
       "Longest sequence that the model is for, in the config.json that convert writes.",
       from_to(0, INT32_MAX),
       "that of model.config, else data.seq_len; a model that is trained here is for data.seq_len at least"});
  const Constraint id = from_to(-1, INT32_MAX);
  table.push_back({section, "begin_token", &options.begin_token,
                   "Token before a text, in that config.json; -1: the default.", id,
                   "that of model.config, or 256 with data.text, or none"});
  table.push_back({section, "end_tokens", &options.end_tokens, "Tokens that end a text, in that config.json.",
                   from_to(0, INT32_MAX), "those of model.config, or 257 with data.text"});
  table.push_back({section, "padding_token", &options.padding_token,
                   "Token that pads texts, in that config.json; -1: the default.", id,
                   "that of model.config, or 258 with data.text, or none"});
}

void describe_data(DataOptions& options, OptionTable& table) {
  const std::string_view section = "data";
  table.push_back({section, "text", &options.text, "A text file; its bytes are the tokens."});
  table.push_back({section, "megatron", &options.megatron,
                   "Instead of text: prefix of a Megatron .bin and .idx pair, or a list of prefixes."});
  table.push_back({section, "megatron_weights", &options.megatron_weights,
                   "Share of the samples from each prefix; empty: in proportion to its tokens.", positive()});
  table.push_back({section, "split", &options.split,
                   "Shares of each prefix's documents for training, validation and test, as in 969,30,1; "
                   "empty: by validation_fraction."});
  table.push_back({section, "seq_len", &options.seq_len, "Tokens per sequence.", from_to(1, kMostTokens)});
  table.push_back({section, "validation_fraction", &options.validation_fraction,
                   "Fraction of the tokens, at the end, held out for evaluation; 0: none.",
                   from_below(0, 1)});
  table.push_back({section, "mask", &options.mask,
                   "documents: attention stays inside each document, whose last token has no target; none: "
                   "document boundaries are ignored; auto: documents if the data has them.",
                   one_of({"auto", "documents", "none"})});
  table.push_back({section, "positions", &options.positions,
                   "Rotary positions count from the start of the document, if documents are masked, or of "
                   "the sequence.",
                   one_of({"document", "sequence"})});
  table.push_back(
      {section, "loss", &options.loss,
       "Target tokens: assistant: those marked in PREFIX.mask of data.megatron, if it exists; all: every "
       "token.",
       one_of({"assistant", "all"})});
  table.push_back({section, "packing", &options.packing,
                   "concat: sequences are cut regardless of documents; best_fit: documents stay whole where "
                   "they fit (best-fit decreasing); balanced: as best_fit, with the samples of a window "
                   "reordered to even out the work of micro-batches and replicas.",
                   one_of({"concat", "best_fit", "balanced"})});
  table.push_back({section, "long_documents", &options.long_documents,
                   "Documents longer than seq_len, if packing keeps documents whole: split or refuse them.",
                   one_of({"split", "refuse"})});
  table.push_back({section, "window", &options.window,
                   "Samples that packing = balanced distributes at a time; 0: 16 batches.",
                   from_to(0, kMostSequences), "16 batches"});
}

void describe_steps(TrainOptions& options, OptionTable& table) {
  const std::string_view section = "train";
  table.push_back({section, "steps", &options.steps, "Optimizer steps.", from_to(1, kMostSteps)});
  table.push_back({section, "batch", &options.batch, "Sequences per step over all data-parallel ranks.",
                   from_to(1, kMostSequences)});
  table.push_back(
      {section, "micro_batch", &options.micro_batch, "Sequences per micro-batch.", from_to(1, 1e6)});
  table.push_back({section, "shuffle", &options.shuffle, "Shuffle the samples anew in every epoch."});
  table.push_back({section, "loss_targets", &options.loss_targets,
                   "s: samples of s + 1 tokens, every token has a target; s-1: samples of s tokens, as "
                   "Hugging Face scores them.",
                   one_of({"s", "s-1"})});
  table.push_back({section, "loss_tile_tokens", &options.loss_tile_tokens,
                   "Tokens whose logits are in memory at a time.", from_to(1, kMostTokens),
                   "512, or 4096 on a GPU"});
  table.push_back({section, "seed", &options.seed, "Seed of the initial weights and of the sample order.",
                   not_negative()});
  table.push_back({section, "precision", &options.precision,
                   "Precision of weights and activations; bf16 has f32 master weights.",
                   one_of({"f64", "f32", "bf16"})});
  table.push_back(
      {section, "threads", &options.threads,
       "Threads per rank; 0: this host's cores divided by its ranks, at most the cores that the rank is "
       "bound to; when resumed, as many as before.",
       from_to(0, 4096)});
  table.push_back({section, "timeout", &options.timeout,
                   "Seconds without progress before ranks give up and name the peer; 0: never. At least 60 "
                   "while ranks agree on the run; after summary.json they wait for rank 0's report without "
                   "limit.",
                   not_negative()});
  table.push_back({section, "device", &options.device,
                   "Device that computes: cuda needs ./dev build --gpu (docs/gpu.md); auto uses the CPU.",
                   one_of({"auto", "cpu", "cuda"})});
  table.push_back(
      {section, "memory_check", &options.memory_check,
       "host: refuse a run that needs more memory than this host or its GPU has free; off: start it anyway.",
       one_of({"host", "off"})});
}

void describe_optimizer(TrainOptions& options, OptionTable& table) {
  const std::string_view section = "train";
  table.push_back({section, "lr", &options.lr, "Peak learning rate, after the warm-up.", positive()});
  table.push_back(
      {section, "min_lr", &options.min_lr, "Learning rate at the end of the cosine.", not_negative()});
  table.push_back({section, "warmup_steps", &options.warmup_steps,
                   "Warm-up steps, in which the learning rate rises from 0.", from_to(0, kMostSteps)});
  table.push_back({section, "lr_schedule", &options.lr_schedule,
                   "Course of the learning rate after the warm-up.", one_of({"cosine", "constant"})});
  Constraint beta = from_below(0, 1);
  beta.length = 2;
  table.push_back(
      {section, "betas", &options.betas, "AdamW's decay rates for the first and second moments.", beta});
  table.push_back({section, "eps", &options.eps, "AdamW's epsilon.", at_least(model::kLeastEpsilon)});
  table.push_back(
      {section, "weight_decay", &options.weight_decay, "AdamW's decoupled weight decay.", not_negative()});
  table.push_back({section, "decay", &options.decay, "Parameters that weight decay applies to.",
                   one_of({"matrices", "all"})});
  table.push_back(
      {section, "clip", &options.clip, "Maximum global gradient norm; 0: no clipping.", not_negative()});
}

void describe_upkeep(TrainOptions& options, OptionTable& table) {
  const std::string_view section = "train";
  const Constraint steps = from_to(0, kMostSteps);
  table.push_back({section, "evaluate_every", &options.evaluate_every,
                   "Steps between evaluations on the held-out data; 0: only at the end.", steps});
  table.push_back({section, "evaluate_sequences", &options.evaluate_sequences,
                   "Maximum sequences per evaluation.", from_to(1, 1e9)});
  table.push_back({section, "checkpoint_every", &options.checkpoint_every,
                   "Steps between checkpoints; the last step gets one too. 0: none at all.", steps});
  table.push_back({section, "keep_checkpoints", &options.keep_checkpoints,
                   "Number of newest checkpoints to keep.", from_to(1, 1e6)});
  table.push_back(
      {section, "buddy_every", &options.buddy_every,
       "Steps between copies of weights and moments to the memory of this and another host, from which "
       "--resume continues without reading a disk; 0: none.",
       steps});
  table.push_back({section, "buddy_dir", &options.buddy_dir,
                   "Folder for those copies on each host, in an in-memory file system."});
}

// A run directory (it has a lock) may have moved since its run file was written: takes its own copy.
void take_copy_beside(const std::filesystem::path& run_file, std::string& schedule_file) {
  const std::filesystem::path directory = run_file.parent_path(), copy = directory / files::kSchedule;
  std::error_code error;
  if (run_file.filename() == files::kRunFile && std::filesystem::exists(directory / files::kLock, error) &&
      std::filesystem::path(schedule_file).filename() == files::kSchedule &&
      std::filesystem::exists(copy, error))
    schedule_file = copy.string();
}

}  // namespace

void describe_details(model::Shape& shape, OptionTable& table) {
  const std::string_view section = "model";
  table.push_back({section, "head_size", &shape.head_size, "Width of a head; 0: hidden / heads.",
                   from_to(0, kMostWidth)});
  table.push_back({section, "head_norms", &shape.head_norms,
                   "Apply RMSNorm to each query and key head before the rotation, as in Qwen3."});
  table.push_back({section, "rope_theta", &shape.rope_theta, "Base of the rotary positions.", positive()});
  describe_rope_scaling(shape.rope_scaling, table);
  table.push_back(
      {section, "norm_epsilon", &shape.norm_epsilon, "Added to the mean square in RMSNorm.", positive()});
}

OptionTable describe(Options& options) {
  OptionTable table;
  describe_model(options.model, table);
  describe_data(options.data, table);
  describe(options.parallel, table);
  describe(options.numerics, table);
  describe(options.moe, options.model, table);
  describe(options.schedule, table);
  describe(options.memory, table);
  describe_steps(options.train, table);
  describe_optimizer(options.train, table);
  describe_upkeep(options.train, table);
  table.push_back({"output", "dir", &options.output.dir,
                   "Run directory; must not hold another run, unless --resume continues it."});
  table.push_back({"output", "gather", &options.output.gather,
                   "Only rank 0's host has the run directory; other ranks send it what they would write."});
  return table;
}

Options read_options(const std::string& path, std::span<const std::string> overrides) {
  Options options;
  const OptionTable table = describe(options);
  files::require_settings(overrides, table);
  files::read_toml_file(path, table);
  take_copy_beside(path, options.schedule.file);
  files::apply_overrides(overrides, table);
  return options;
}

std::string options_help() {
  Options defaults;
  return print_help(describe(defaults));
}

std::string options_markdown() {
  Options defaults;
  return "# The keys of a run file\n\n"
         "Generated from the table that also drives the reader, the command line and the help. Every key can "
         "also be given on the\n"
         "command line of `train`, `simulate` and `data`, as `--section.key value`.\n\n" +
         print_markdown(describe(defaults));
}

}  // namespace penstock::run
