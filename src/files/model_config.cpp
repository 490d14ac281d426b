// SPDX-License-Identifier: Apache-2.0
#include "files/model_config.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "files/config_members.h"
#include "files/mapped_file.h"
#include "files/strict_json.h"

namespace penstock::files {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestFile = 1 << 20;
constexpr int kDeepest = 16;

// rope_scaling before transformers 5; since then rope_parameters, which includes rope_theta.
void read_rope(const json& object, const std::string& origin, model::Shape& shape) {
  Members rope(object, origin);
  shape.rope_theta = rope.number("rope_theta", shape.rope_theta);
  rope.require("partial_rotary_factor", {1.0});
  const json* type = rope.take("rope_type");
  if (type == nullptr) type = rope.take("type");
  if (type == nullptr || *type == "default") return rope.refuse_the_rest();
  if (*type != "llama3")
    rope.fail("the rotary scaling " + shown(*type) + " is not supported; expected \"llama3\"");
  model::RopeScaling& scaling = shape.rope_scaling;
  scaling.factor = rope.number("factor");
  scaling.low_frequency_factor = rope.number("low_freq_factor");
  scaling.high_frequency_factor = rope.number("high_freq_factor");
  scaling.original_positions = rope.count("original_max_position_embeddings");
  if (scaling.factor < 1) rope.fail("factor = " + exact_number(scaling.factor) + " must be 1 or more");
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
    rope.fail("high_freq_factor = " + exact_number(scaling.high_frequency_factor) +
              " must be above low_freq_factor = " + exact_number(scaling.low_frequency_factor));
  if (scaling.factor == 1) scaling = {};
  rope.refuse_the_rest();
}

struct Family {
  std::string_view model_type, architecture;
  std::int64_t kv_heads;  // default; 0: as many as heads
  std::int64_t head_dim;  // 0: hidden / heads
  double norm_epsilon, rope_theta;
  std::int64_t positions;
};
constexpr Family kFamilies[] = {{"llama", "Llama", 0, 0, 1e-6, 1e4, 2048},
                                {"mixtral", "Mixtral", 8, 0, 1e-5, 1e6, 4096 * 32},
                                {"qwen3", "Qwen3", 32, 128, 1e-6, 1e4, 32768},
                                {"qwen3_moe", "Qwen3Moe", 4, 0, 1e-6, 1e4, 32768},
                                {"qwen2_moe", "Qwen2Moe", 16, 0, 1e-6, 1e4, 32768}};

const Family& family_of(Members& members) {
  const json* type = members.take("model_type");
  if (type == nullptr) return kFamilies[0];
  const auto found =
      std::ranges::find_if(kFamilies, [&](const Family& family) { return *type == family.model_type; });
  if (found != std::end(kFamilies)) return *found;
  members.fail(
      "model_type = " + shown(*type) +
      " is not supported; expected \"llama\", \"mixtral\", \"qwen3\", \"qwen3_moe\" or \"qwen2_moe\"");
}

// Other families may have the same model_type.
void require_architecture(Members& members, const Family& family) {
  const json* named = members.take("architectures");
  if (named == nullptr) return;
  const auto is_of_family = [&](const json& name) {
    if (!name.is_string()) return false;
    const auto& text = name.get_ref<const std::string&>();
    return text.starts_with(std::string(family.architecture) + "For") ||
           text == std::string(family.architecture) + "Model";
  };
  if (named->is_array() && std::ranges::all_of(*named, is_of_family)) return;
  members.fail("architectures = " + shown(*named) + " is not supported; expected [\"" +
               std::string(family.architecture) + "ForCausalLM\"]");
}

void read_choice(Members& members, model::Shape& shape) {
  shape.normalised_experts = members.flag("norm_topk_prob", false);
  members.require("decoder_sparse_step", {1});
  members.require("mlp_only_layers", {json::array(), nullptr});
}

// Every layer has experts, and experts have no capacity limit.
void read_experts(Members& members, const Family& family, model::Shape& shape) {
  if (family.model_type == "mixtral") {
    shape.experts = members.count("num_local_experts", 8);
    shape.experts_per_token = members.count("num_experts_per_tok", 2);
    members.require("router_jitter_noise", {0.0});
  }
  if (family.model_type == "qwen3_moe") {
    const std::int64_t local = members.count("num_local_experts", 0);  // since transformers 5
    shape.experts = members.count("num_experts", local > 0 ? local : 128);
    if (local > 0 && local != shape.experts)
      members.fail("num_local_experts = " + std::to_string(local) +
                   " is not num_experts = " + std::to_string(shape.experts));
    shape.experts_per_token = members.count("num_experts_per_tok", 8);
    shape.ffn = members.count("moe_intermediate_size", 768);
    read_choice(members, shape);
  }
  if (family.model_type == "qwen2_moe") {
    shape.experts = members.count("num_experts", 60);
    shape.experts_per_token = members.count("num_experts_per_tok", 4);
    shape.ffn = members.count("moe_intermediate_size", 1408);
    shape.shared_ffn = members.count("shared_expert_intermediate_size", 5632);
    shape.shared_gate = true;
    read_choice(members, shape);
    if (members.flag("qkv_bias", true))
      members.fail("qkv_bias = true, also when it is left out, is not supported; expected false");
  }
}

// Qwen lists the attention kind of each layer.
void read_attention_kinds(Members& members, const Family& family) {
  if (!family.model_type.starts_with("qwen")) return;
  members.require("use_sliding_window", {false});
  const json* types = members.take("layer_types");
  const bool whole = types == nullptr ||
                     (types->is_array() &&
                      std::ranges::all_of(*types, [](const json& type) { return type == "full_attention"; }));
  if (!whole) members.fail("layer_types has layers without full attention, which are not supported");
}

}  // namespace

model::Shape parse_model_config(std::string_view text, std::string_view origin) {
  const json document = parse_strictly(text, origin, "the file", kDeepest);
  Members members(document, std::string(origin));
  const Family& family = family_of(members);
  require_architecture(members, family);
  members.require("hidden_act", {"silu"});
  for (const char* key : {"attention_bias", "mlp_bias"}) members.require(key, {false});
  members.require("quantization_config", {nullptr});
  members.require("sliding_window", {family.model_type == "qwen2_moe" ? json(0) : json()});  // it writes 0
  members.require("partial_rotary_factor", {1.0});
  members.require("attention_dropout", {0.0});
  members.require("is_causal", {true});
  if (members.is_null("is_causal")) members.fail("is_causal = null is not supported; expected true");
  model::Shape shape;
  shape.layers = members.count("num_hidden_layers");
  shape.hidden = members.count("hidden_size");
  shape.ffn = members.count("intermediate_size");
  shape.heads = members.count("num_attention_heads");
  // Hugging Face's null means as many as heads, where a key that is left out means the family's default.
  const bool as_heads = family.kv_heads == 0 || members.is_null("num_key_value_heads");
  shape.kv_heads = members.count("num_key_value_heads", as_heads ? shape.heads : family.kv_heads);
  shape.head_size = members.count("head_dim", family.head_dim);
  shape.vocab = members.count("vocab_size");
  shape.norm_epsilon = members.number("rms_norm_eps", family.norm_epsilon);
  shape.tied_embeddings = members.flag("tie_word_embeddings", false);
  shape.rope_theta = members.number("rope_theta", family.rope_theta);
  read_experts(members, family, shape);
  shape.head_norms = family.model_type.starts_with("qwen3");
  read_attention_kinds(members, family);
  const json* const scaling = members.take("rope_scaling");
  const json* const parameters = members.take("rope_parameters");
  if (scaling && parameters && *scaling != *parameters)
    members.fail("rope_scaling and rope_parameters are both given and differ; keep one");
  if (scaling) read_rope(*scaling, std::string(origin) + ": rope_scaling", shape);
  if (parameters) read_rope(*parameters, std::string(origin) + ": rope_parameters", shape);
  members.refuse_the_rest();
  try {
    model::validate(shape);
  } catch (const InputError& error) {
    throw InputError(std::string(origin) + ": " + error.what());
  }
  return shape;
}

model::Shape read_model_config(const std::string& path) {
  const std::string file = model_config_in(path);
  return parse_model_config(read_text(file, kLongestFile), printable(file, 500));
}

std::string model_config_in(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  return folder ? (std::filesystem::path(path) / "config.json").string() : path;
}

ConfigExtras read_config_extras(const std::string& path) {
  const std::string file = model_config_in(path);
  const json document =
      parse_strictly(read_text(file, kLongestFile), printable(file, 500), "the file", kDeepest);
  ConfigExtras extras;
  if (!document.is_object()) return extras;
  const auto numbers = [&](const char* key) {
    std::vector<std::int64_t> found;
    const json value = document.value(key, json());
    for (const json& one : value.is_array() ? value : json::array({value})) {
      if (one.is_number_integer() && one >= 0 && one <= INT32_MAX) found.push_back(one.get<std::int64_t>());
    }
    return found;
  };
  const auto number = [&](const char* key) {
    const std::vector<std::int64_t> found = numbers(key);
    return found.empty() ? std::nullopt : std::optional(found.front());
  };
  const auto family = std::ranges::find(kFamilies, document.value("model_type", json()), &Family::model_type);
  if (family != std::end(kFamilies)) extras.positions = family->positions;
  extras.positions = number("max_position_embeddings").value_or(extras.positions);
  extras.begin_token = number("bos_token_id");
  extras.end_tokens = numbers("eos_token_id");
  extras.padding_token = number("pad_token_id");
  return extras;
}

namespace {

const Family& family_of(const model::Shape& shape) {
  const char* const lacks = " has no form in Hugging Face's files";
  if (shape.shared_ffn > 0) {
    require(shape.shared_gate, std::string("a shared expert without moe.shared_gate") + lacks);
    require(!shape.head_norms, std::string("a shared expert with model.head_norms") + lacks);
    return kFamilies[4];
  }
  const bool mixture = shape.experts > 1;
  require(!mixture || shape.normalised_experts || shape.head_norms,
          std::string("moe.norm_topk = false without model.head_norms or a shared expert") + lacks);
  // transformers refuses such a config.json of Llama, though not of the other families.
  require(mixture || shape.head_norms || shape.hidden % shape.heads == 0,
          "model.hidden = " + std::to_string(shape.hidden) +
              ", not a multiple of model.heads = " + std::to_string(shape.heads) + "," + lacks);
  return kFamilies[(shape.head_norms ? 2 : 0) + (mixture ? 1 : 0)];
}

// The families name these settings differently.
void add_experts(const model::Shape& shape, const Family& family, nlohmann::ordered_json& document) {
  if (shape.experts == 1) return;
  const bool mixtral = family.model_type == "mixtral";
  document["num_experts_per_tok"] = shape.experts_per_token;
  document[mixtral ? "num_local_experts" : "num_experts"] = shape.experts;
  if (mixtral) return;
  if (shape.shared_ffn > 0) {
    document["shared_expert_intermediate_size"] = shape.shared_ffn;
    document["qkv_bias"] = false;
  }
  document["moe_intermediate_size"] = shape.ffn;
  document["norm_topk_prob"] = shape.normalised_experts;
  document["decoder_sparse_step"] = 1;
  document["mlp_only_layers"] = nlohmann::ordered_json::array();
}

json rope_scaling(const model::RopeScaling& scaling) {
  if (scaling.factor == 1.0) return nullptr;
  return {{"rope_type", "llama3"},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_frequency_factor},
          {"high_freq_factor", scaling.high_frequency_factor},
          {"original_max_position_embeddings", scaling.original_positions}};
}

}  // namespace

std::string print_model_config(const model::Shape& shape, const ConfigExtras& extras) {
  const auto token = [](std::optional<std::int64_t> id) { return id ? json(*id) : json(nullptr); };
  const auto tokens = [](const std::vector<std::int64_t>& ids) {
    return ids.empty() ? json(nullptr) : ids.size() == 1 ? json(ids.front()) : json(ids);
  };
  const Family& family = family_of(shape);
  nlohmann::ordered_json document{{"architectures", {std::string(family.architecture) + "ForCausalLM"}},
                                  {"model_type", family.model_type},
                                  {"torch_dtype", extras.element_type},
                                  {"num_hidden_layers", shape.layers},
                                  {"hidden_size", shape.hidden},
                                  {"intermediate_size", shape.ffn},
                                  {"num_attention_heads", shape.heads},
                                  {"num_key_value_heads", shape.kv_heads},
                                  {"head_dim", shape.head_dim()},
                                  {"vocab_size", shape.vocab},
                                  {"max_position_embeddings", extras.positions},
                                  {"rms_norm_eps", shape.norm_epsilon},
                                  {"rope_theta", shape.rope_theta},
                                  {"rope_scaling", rope_scaling(shape.rope_scaling)},
                                  {"tie_word_embeddings", shape.tied_embeddings},
                                  {"hidden_act", "silu"},
                                  {"attention_bias", false},
                                  {"attention_dropout", 0.0},
                                  {"initializer_range", 0.02},
                                  {"bos_token_id", token(extras.begin_token)},
                                  {"eos_token_id", tokens(extras.end_tokens)},
                                  {"pad_token_id", token(extras.padding_token)},
                                  {"use_cache", true}};
  if (family.model_type == "llama") document["mlp_bias"] = false;
  add_experts(shape, family, document);
  return document.dump(2) + "\n";
}

}  // namespace penstock::files
