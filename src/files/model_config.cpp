// SPDX-License-Identifier: Apache-2.0
#include "files/model_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "files/mapped_file.h"
#include "files/strict_json.h"

namespace penstock::files {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestFile = 1 << 20;
constexpr int kDeepest = 16;
constexpr std::int64_t kMostWidth = 1 << 24;

// Settings that do not affect a forward pass.
constexpr std::string_view kPassedOver[]{"_name_or_path",
                                         "attention_dropout",
                                         "bos_token_id",
                                         "dtype",
                                         "eos_token_id",
                                         "id2label",
                                         "initializer_range",
                                         "label2id",
                                         "max_position_embeddings",
                                         "model_type",
                                         "pad_token_id",
                                         "pretraining_tp",
                                         "transformers_version",
                                         "torch_dtype",
                                         "use_cache",
                                         "rope_type",
                                         "type",
                                         "return_dict",
                                         "output_hidden_states"};

// A JSON object whose members are consumed by name; members left at the end are unknown settings.
class Members {
 public:
  Members(const json& object, std::string origin) : object_(object), origin_(std::move(origin)) {
    if (!object.is_object()) fail("is no JSON object");
  }

  std::int64_t count(const char* key) { return count(key, -1); }
  std::int64_t count(const char* key, std::int64_t otherwise) {
    const json* value = take(key);
    if (value == nullptr && otherwise >= 0) return otherwise;
    if (value == nullptr) fail("has no " + std::string(key));
    const bool good = value->is_number_integer() && *value >= 1 && *value <= kMostWidth;
    if (!good) fail(said(key, *value) + " must be an integer from 1 to " + std::to_string(kMostWidth));
    return value->get<std::int64_t>();
  }

  double number(const char* key) { return number(key, -1); }
  double number(const char* key, double otherwise) {
    const json* value = take(key);
    if (value == nullptr && otherwise >= 0) return otherwise;
    if (value == nullptr) fail("has no " + std::string(key));
    const bool good = value->is_number() && std::isfinite(value->get<double>()) && value->get<double>() > 0;
    if (!good) fail(said(key, *value) + " must be a positive number");
    return value->get<double>();
  }

  bool flag(const char* key, bool otherwise) {
    const json* value = take(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(said(key, *value) + " must be true or false");
    return value->get<bool>();
  }

  // The member must be missing, null, or one of the given values.
  void require(const char* key, std::initializer_list<json> allowed) {
    const json* value = take(key);
    if (value == nullptr || std::ranges::find(allowed, *value) != allowed.end()) return;
    fail(said(key, *value) + " is not supported; expected " + allowed.begin()->dump());
  }

  // nullptr when missing or null.
  const json* take(const char* key) {
    taken_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void refuse_the_rest() const {
    for (const auto& [key, value] : object_.items()) {
      const bool known = std::ranges::find(taken_, key) != taken_.end() ||
                         std::ranges::find(kPassedOver, key) != std::end(kPassedOver);
      const bool off = value.is_null() || value == false;
      if (!known && !off) fail(said(key, value) + " is not known, and might change what the model computes");
    }
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(origin_ + ": " + what); }

 private:
  static std::string said(const std::string& key, const json& value) {
    return printable(key) + " = " + printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  const json& object_;
  std::string origin_;
  std::vector<std::string> taken_;
};

// rope_scaling before transformers 5; since then rope_parameters, which includes rope_theta.
void read_rope(const json& object, const std::string& origin, model::Shape& shape) {
  Members rope(object, origin);
  shape.rope_theta = rope.number("rope_theta", shape.rope_theta);
  rope.require("partial_rotary_factor", {1.0});
  const json* type = rope.take("rope_type");
  if (type == nullptr) type = rope.take("type");
  if (type == nullptr || *type == "default") return rope.refuse_the_rest();
  if (*type != "llama3")
    rope.fail("the rotary scaling " + printable(type->dump()) + " is not supported; expected \"llama3\"");
  model::RopeScaling& scaling = shape.rope_scaling;
  scaling.factor = rope.number("factor");
  scaling.low_frequency_factor = rope.number("low_freq_factor");
  scaling.high_frequency_factor = rope.number("high_freq_factor");
  scaling.original_positions = rope.count("original_max_position_embeddings");
  if (scaling.factor < 1) rope.fail("factor = " + exact_number(scaling.factor) + " must be 1 or more");
  if (scaling.high_frequency_factor <= scaling.low_frequency_factor)
    rope.fail("high_freq_factor = " + exact_number(scaling.high_frequency_factor) +
              " must be above low_freq_factor = " + exact_number(scaling.low_frequency_factor));
  rope.refuse_the_rest();
}

// Other families may say model_type = "llama" too.
void require_llama(Members& members) {
  const json* named = members.take("architectures");
  if (named == nullptr) return;
  const auto is_llama = [](const json& name) {
    return name.is_string() && name.get_ref<const std::string&>().starts_with("Llama");
  };
  if (named->is_array() && std::ranges::all_of(*named, is_llama)) return;
  members.fail("architectures = " + printable(named->dump(-1, ' ', false, json::error_handler_t::replace)) +
               " is not supported; expected [\"LlamaForCausalLM\"]");
}

}  // namespace

model::Shape parse_model_config(std::string_view text, std::string_view origin) {
  const json document = parse_strictly(text, origin, "the file", kDeepest);
  Members members(document, std::string(origin));
  members.require("model_type", {"llama"});
  require_llama(members);
  members.require("hidden_act", {"silu"});
  for (const char* key : {"attention_bias", "mlp_bias"}) members.require(key, {false});
  for (const char* key : {"sliding_window", "quantization_config"}) members.require(key, {nullptr});
  members.require("partial_rotary_factor", {1.0});
  members.require("attention_dropout", {0.0});
  model::Shape shape;
  shape.layers = members.count("num_hidden_layers");
  shape.hidden = members.count("hidden_size");
  shape.ffn = members.count("intermediate_size");
  shape.heads = members.count("num_attention_heads");
  shape.kv_heads = members.count("num_key_value_heads", shape.heads);
  shape.head_size = members.count("head_dim", 0);
  shape.vocab = members.count("vocab_size");
  shape.norm_epsilon = members.number("rms_norm_eps", 1e-6);
  shape.tied_embeddings = members.flag("tie_word_embeddings", false);
  shape.rope_theta = members.number("rope_theta", 10000.0);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (const json* rope = members.take(key)) read_rope(*rope, std::string(origin) + ": " + key, shape);
  }
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
  // The first of several end-of-text tokens.
  const auto number = [&](const char* key) -> std::optional<std::int64_t> {
    json value = document.value(key, json());
    if (value.is_array() && !value.empty()) value = json(value[0]);
    const bool good = value.is_number_integer() && value >= 0 && value <= INT32_MAX;
    return good ? std::optional(value.get<std::int64_t>()) : std::nullopt;
  };
  extras.positions = number("max_position_embeddings").value_or(extras.positions);
  extras.begin_token = number("bos_token_id");
  extras.end_token = number("eos_token_id");
  extras.padding_token = number("pad_token_id");
  return extras;
}

std::string print_model_config(const model::Shape& shape, const ConfigExtras& extras) {
  json rope;  // null: none
  const model::RopeScaling& scaling = shape.rope_scaling;
  if (scaling.factor != 1.0) {
    rope = {{"rope_type", "llama3"},
            {"factor", scaling.factor},
            {"low_freq_factor", scaling.low_frequency_factor},
            {"high_freq_factor", scaling.high_frequency_factor},
            {"original_max_position_embeddings", scaling.original_positions}};
  }
  const auto token = [](std::optional<std::int64_t> id) { return id ? json(*id) : json(nullptr); };
  const nlohmann::ordered_json document{{"architectures", {"LlamaForCausalLM"}},
                                        {"model_type", "llama"},
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
                                        {"rope_scaling", rope},
                                        {"tie_word_embeddings", shape.tied_embeddings},
                                        {"hidden_act", "silu"},
                                        {"attention_bias", false},
                                        {"attention_dropout", 0.0},
                                        {"mlp_bias", false},
                                        {"initializer_range", 0.02},
                                        {"bos_token_id", token(extras.begin_token)},
                                        {"eos_token_id", token(extras.end_token)},
                                        {"pad_token_id", token(extras.padding_token)},
                                        {"use_cache", true}};
  return document.dump(2) + "\n";
}

}  // namespace penstock::files
