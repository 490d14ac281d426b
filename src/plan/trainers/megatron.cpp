// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/megatron.h"

#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

enum class Kind : std::uint8_t { Flag, Integer, Number, Word, List };

const std::map<std::string_view, Kind>& known_options() {
  static const std::map<std::string_view, Kind> known = [] {
    std::map<std::string_view, Kind> kinds;
    const auto add = [&](Kind kind, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) kinds.emplace(name, kind);
    };
#define FLAGS(...) add(Kind::Flag, {__VA_ARGS__});
#define INTEGERS(...) add(Kind::Integer, {__VA_ARGS__});
#define NUMBERS(...) add(Kind::Number, {__VA_ARGS__});
#define WORDS(...) add(Kind::Word, {__VA_ARGS__});
#define LISTS(...) add(Kind::List, {__VA_ARGS__});
#include "plan/trainers/megatron_options.inc"
#undef FLAGS
#undef INTEGERS
#undef NUMBERS
#undef WORDS
#undef LISTS
    return kinds;
  }();
  return known;
}

// Words of a command line, without its line continuations.
std::vector<std::string> words_of(const std::string& arguments) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : arguments + " ") {
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      if (word != "\\") words.push_back(word);
      word.clear();
    }
  }
  return words;
}

class Arguments {
 public:
  explicit Arguments(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    for (std::size_t i = 0; i < words.size();) take(words, i);
  }

  bool has(std::string_view name) const { return values_.contains(name); }
  std::string word(std::string_view name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    if (!has(name)) return otherwise;
    const std::int64_t value = *parse_integer(values_.find(name)->second);
    require(value > 0, std::string(name) + " " + std::to_string(value) + ": expected 1 or more");
    return value;
  }
  std::int64_t needed(std::string_view name) const {
    require(has(name), std::string(name) + " is missing; the step's time and memory depend on it");
    return integer(name, 0);
  }

 private:
  void take(const std::vector<std::string>& words, std::size_t& i) {
    std::string name = words[i++];
    std::optional<std::string> value;
    if (const std::size_t equals = name.find('='); name.starts_with("--") && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto known = known_options().find(name);
    if (known == known_options().end()) refuse_unknown(name);
    const bool is_list = known->second == Kind::List;
    while (known->second != Kind::Flag && (!value || is_list) && i < words.size() &&
           !words[i].starts_with("--")) {
      value = value ? *value + " " + words[i] : words[i];
      ++i;
    }
    check(name, known->second, value);
    values_[std::string(known->first)] = value.value_or("");
  }

  [[noreturn]] static void refuse_unknown(const std::string& name) {
    std::vector<std::string_view> names;
    for (const auto& [option, kind] : known_options()) names.push_back(option);
    throw InputError("\"" + printable(name) + "\" is no argument of Megatron-LM 307dcf37; did you mean " +
                     std::string(nearest(name, names)) + "?");
  }

  static void check(const std::string& name, Kind kind, const std::optional<std::string>& value) {
    if (kind == Kind::Flag)
      return require(!value, name + " takes no value; got \"" + printable(value.value_or("")) + "\"");
    require(value.has_value(), name + " has no value");
    if (kind == Kind::Integer)
      require(parse_integer(*value).has_value(),
              name + " " + printable(*value) + ": expected a whole number");
    if (kind == Kind::Number)
      require(parse_number(*value).has_value() ||
                  parse_number(value->substr(value->starts_with('-'))).has_value(),
              name + " " + printable(*value) + ": expected a number");
  }

  std::map<std::string, std::string, std::less<>> values_;
};

// The trainer's own asserts, in its words.
void require_consistent(const Arguments& given) {
  require(!(given.has("--fp16") && given.has("--bf16")), "--fp16 and --bf16 are both given; keep one");
  require(!given.has("--tp-comm-overlap") || given.has("--sequence-parallel"),
          "--tp-comm-overlap: tensor parallel communication/GEMM overlap can happen only when "
          "--sequence-parallel "
          "is given");
  require(!given.has("--overlap-param-gather") ||
              (given.has("--use-distributed-optimizer") && given.has("--overlap-grad-reduce")),
          "--overlap-param-gather needs --use-distributed-optimizer and --overlap-grad-reduce");
  require(!given.has("--num-query-groups") || given.has("--group-query-attention"),
          "--num-query-groups means nothing without --group-query-attention");
  require(!given.has("--recompute-method") || given.word("--recompute-granularity", "") == "full",
          "--recompute-method is of --recompute-granularity full");
  require(given.word("--recompute-granularity", "") != "full" || given.has("--recompute-method"),
          "--recompute-granularity full needs --recompute-method uniform or block");
  require(given.word("--recompute-method", "uniform") == "uniform" &&
              given.integer("--recompute-num-layers", 1) == 1,
          "--recompute-method " + given.word("--recompute-method", "uniform") + ", --recompute-num-layers " +
              given.word("--recompute-num-layers", "1") + ": only uniform with 1 layer is predicted");
  require(!(given.has("--train-iters") && given.has("--train-samples")),
          "--train-iters and --train-samples are both given; keep one");
}

void read_model(const Arguments& given, model::Shape& shape) {
  shape.layers = given.needed("--num-layers");
  shape.hidden = given.needed("--hidden-size");
  shape.heads = given.needed("--num-attention-heads");
  shape.kv_heads =
      given.has("--group-query-attention") ? given.integer("--num-query-groups", 1) : shape.heads;
  require(given.has("--swiglu"), "--swiglu is missing; models with another MLP are not predicted from flags");
  constexpr std::int64_t kUnit = 64;  // as Megatron-LM rounds two thirds of 4·hidden
  shape.ffn = given.integer("--ffn-hidden-size", 8 * shape.hidden / 3 / kUnit * kUnit);
  shape.vocab = given.needed("--vocab-size");
  shape.tied_embeddings = !given.has("--untie-embeddings-and-output-weights");
  shape.experts = given.integer("--num-experts", 1);
  shape.experts_per_token = shape.experts > 1 ? given.integer("--moe-router-topk", 2) : 1;
}

// Stages of a device.
std::int64_t chunks_of(const Arguments& given, std::int64_t layers, std::int64_t pp) {
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
  for (const char* name : {"--swiglu", "--disable-bias-linear", "--use-mcore-models", "--use-flash-attn",
                           "--bf16", "--use-distributed-optimizer"})
    settings.push_back({name, ""});
  if (!shape.tied_embeddings) settings.push_back({"--untie-embeddings-and-output-weights", ""});
  if (shape.experts > 1) {
    add("--num-experts", shape.experts);
    add("--moe-router-topk", shape.experts_per_token);
    settings.push_back({"--moe-token-dispatcher-type", "alltoall"});
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
  if (layout.mesh.tensor > 1) settings.push_back({"--sequence-parallel", ""});
  add("--context-parallel-size", layout.mesh.context);
  add("--pipeline-model-parallel-size", layout.mesh.pipeline);
  if (layout.chunks > 1)
    add("--num-layers-per-virtual-pipeline-stage", workload.model.shape.layers / stages_of(layout));
  if (layout.keep == model::keep_of(model::Policy::Full)) {
    settings.push_back({"--recompute-granularity", "full"});
    settings.push_back({"--recompute-method", "uniform"});
    add("--recompute-num-layers", 1);
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

void read_megatron(const std::string& arguments, PlanOptions& options) {
  const Arguments given(arguments);
  require_consistent(given);
  read_model(given, options.model.shape);
  options.workload.seq_len = given.needed("--seq-length");
  PlanOptions::LayoutKeys& layout = options.layout;
  layout.tp = given.integer("--tensor-model-parallel-size", 1);
  layout.cp = given.integer("--context-parallel-size", 1);
  layout.pp = given.integer("--pipeline-model-parallel-size", 1);
  layout.ep = given.integer("--expert-model-parallel-size", 1);
  layout.micro_batch = given.needed("--micro-batch-size");
  const std::int64_t world = options.cluster.gpus, ranks = layout.tp * layout.cp * layout.pp;
  require(world % ranks == 0, "world size (" + std::to_string(world) +
                                  ") is not divisible by tensor parallel size (" + std::to_string(layout.tp) +
                                  ") times pipeline parallel size (" + std::to_string(layout.pp) +
                                  ") times context parallel size (" + std::to_string(layout.cp) + ")");
  const std::int64_t step = layout.micro_batch * (world / ranks);
  options.workload.global_batch = given.integer("--global-batch-size", step);
  require(options.workload.global_batch % step == 0,
          "--global-batch-size " + std::to_string(options.workload.global_batch) +
              " is not divisible by --micro-batch-size times data-parallel size, " + std::to_string(step));
  require(layout.tp > 1 || !given.has("--sequence-parallel"),
          "--sequence-parallel means nothing with --tensor-model-parallel-size 1");
  layout.chunks = chunks_of(given, options.model.shape.layers, layout.pp);
  layout.schedule = layout.chunks > 1 ? "interleaved" : "1f1b";
  layout.policy = given.word("--recompute-granularity", "") == "full" ? "full" : "none";
}

}  // namespace penstock::plan
