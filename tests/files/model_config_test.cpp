// SPDX-License-Identifier: Apache-2.0
#include "files/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "failure.h"

namespace penstock::files {
namespace {

using nlohmann::json;

// As published with Llama 3.1 8B.
json llama31() {
  return json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008], "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 128256})");
}

// As published with Mixtral 8x7B v0.1 and Qwen3-30B-A3B.
json mixtral() {
  return json::parse(R"({
    "architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "model_type": "mixtral", "num_attention_heads": 32,
    "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
    "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
    "torch_dtype": "bfloat16", "transformers_version": "4.36.0.dev0", "use_cache": true, "vocab_size": 32000})");
}
json qwen3_moe() {
  return json::parse(R"({
    "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "decoder_sparse_step": 1, "eos_token_id": 151645, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 6144,
    "max_position_embeddings": 40960, "max_window_layers": 48, "mlp_only_layers": [],
    "model_type": "qwen3_moe", "moe_intermediate_size": 768, "norm_topk_prob": true,
    "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
    "num_key_value_heads": 4, "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null,
    "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
}

std::string config_refusal(const json& config) {
  return failure<InputError>([&] { parse_model_config(config.dump(), "config.json"); });
}
std::string config_refusal(const char* key, const json& value) {
  json config = llama31();
  config[key] = value;
  return config_refusal(config);
}

TEST(ModelConfig, ReadsThePublishedLlama) {
  const model::Shape shape = parse_model_config(llama31().dump(), "config.json");
  EXPECT_EQ(model::total_parameters(shape), 8'030'261'248);
  EXPECT_EQ(shape.rope_theta, 500000.0);
  EXPECT_EQ(shape.rope_scaling.factor, 8.0);
  EXPECT_EQ(shape.rope_scaling.original_positions, 8192);
  EXPECT_EQ(shape.norm_epsilon, 1e-5);
  EXPECT_FALSE(shape.tied_embeddings);
}

TEST(ModelConfig, ReadsThePublishedMixturesOfExperts) {
  const model::Shape one = parse_model_config(mixtral().dump(), "config.json");
  EXPECT_EQ(model::total_parameters(one), 46'702'792'704);
  EXPECT_EQ(one.experts, 8);
  EXPECT_EQ(one.experts_per_token, 2);
  EXPECT_TRUE(one.normalised_experts);
  EXPECT_FALSE(one.head_norms);
  const model::Shape other = parse_model_config(qwen3_moe().dump(), "config.json");
  EXPECT_EQ(model::total_parameters(other), 30'532'122'624);
  EXPECT_EQ(other.ffn, 768);
  EXPECT_TRUE(other.head_norms);
  json plain = qwen3_moe();
  plain.erase("head_dim");
  EXPECT_EQ(parse_model_config(plain.dump(), "").head_dim(), 64) << "hidden / heads, as transformers has it";
  plain = qwen3_moe();
  plain.erase("norm_topk_prob");
  EXPECT_FALSE(parse_model_config(plain.dump(), "").normalised_experts);
  plain["num_local_experts"] = 64;
  EXPECT_EQ(config_refusal(plain), "config.json: num_local_experts = 64 is not num_experts = 128");
  plain.erase("num_experts");
  EXPECT_EQ(parse_model_config(plain.dump(), "").experts, 64);
}

TEST(ModelConfig, ReadsASharedExpertWithoutBiases) {
  json config = qwen3_moe();
  config["model_type"] = "qwen2_moe";
  config["architectures"] = {"Qwen2MoeForCausalLM"};
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, json>>{{"num_hidden_layers", 24},
                                                           {"hidden_size", 2048},
                                                           {"num_attention_heads", 16},
                                                           {"num_key_value_heads", 16},
                                                           {"head_dim", 128},
                                                           {"num_experts", 60},
                                                           {"num_experts_per_tok", 4},
                                                           {"moe_intermediate_size", 1408},
                                                           {"shared_expert_intermediate_size", 5632},
                                                           {"vocab_size", 151936},
                                                           {"qkv_bias", false},
                                                           {"norm_topk_prob", false}})
    config[key] = value;
  const model::Shape shape = parse_model_config(config.dump(), "");
  // Qwen1.5-MoE-A2.7B has 14,315,784,192, with biases of its queries, keys and values.
  EXPECT_EQ(model::total_parameters(shape), 14'315'784'192 - 24 * 3 * 2048);
  EXPECT_FALSE(shape.head_norms);
  EXPECT_TRUE(shape.shared_gate);
  const model::Shape again = parse_model_config(print_model_config(shape, {}), "");
  EXPECT_EQ(model::parameter_names(again), model::parameter_names(shape));
  EXPECT_EQ(again.shared_ffn, 5632);
  config.erase("qkv_bias");
  EXPECT_NE(config_refusal(config).find("qkv_bias = true"), std::string::npos);
}

TEST(ModelConfig, ReadsADenseQwen3) {
  json config = qwen3_moe();
  for (const char* key :
       {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob",
        "decoder_sparse_step", "mlp_only_layers", "router_aux_loss_coef", "output_router_logits"})
    config.erase(key);
  config["model_type"] = "qwen3";
  config["architectures"] = {"Qwen3ForCausalLM"};
  config["layer_types"] = json::array({"full_attention", "full_attention"});
  const model::Shape shape = parse_model_config(config.dump(), "");
  EXPECT_TRUE(shape.head_norms);
  EXPECT_EQ(shape.experts, 1);
  EXPECT_EQ(shape.ffn, 6144);
  EXPECT_EQ(parse_model_config(print_model_config(shape, {}), "").head_norms, true);
  config["layer_types"][1] = "sliding_attention";
  EXPECT_NE(config_refusal(config).find("layer_types has layers without full attention"), std::string::npos);
}

// As in transformers, where a key that is left out has the family's default.
TEST(ModelConfig, TakesNullKeyHeadsForAsManyAsHeads) {
  const char* without = R"({"model_type": "qwen3", "num_attention_heads": 64, "num_hidden_layers": 2,
      "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300})";
  std::string null = without;
  null.insert(1, R"("num_key_value_heads": null, )");
  EXPECT_EQ(parse_model_config(without, "x").kv_heads, 32);
  EXPECT_EQ(parse_model_config(null, "x").kv_heads, 64);
}

TEST(ModelConfig, RefusesOtherMixturesByName) {
  const auto refused = [](json config, const char* key, const json& value) {
    config[key] = value;
    return config_refusal(config).starts_with("config.json: " + std::string(key) + " = ");
  };
  EXPECT_TRUE(refused(mixtral(), "expert_capacity", 64));
  EXPECT_TRUE(refused(mixtral(), "capacity_factor", 1.25));
  EXPECT_TRUE(refused(mixtral(), "router_jitter_noise", 0.1));
  EXPECT_TRUE(refused(mixtral(), "scoring_func", "sigmoid"));
  EXPECT_TRUE(refused(mixtral(), "sliding_window", 4096));
  EXPECT_TRUE(refused(qwen3_moe(), "mlp_only_layers", json::array({3})));
  EXPECT_TRUE(refused(qwen3_moe(), "decoder_sparse_step", 2));
  EXPECT_TRUE(refused(qwen3_moe(), "use_sliding_window", true));
  EXPECT_TRUE(refused(qwen3_moe(), "architectures", json::array({"Qwen3ForCausalLM"})));
  EXPECT_NE(config_refusal([] {
              json config = mixtral();
              config["num_experts_per_tok"] = 9;
              return config;
            }())
                .find("model.experts_per_token = 9 must be from 1 to model.experts = 8"),
            std::string::npos);
}

TEST(ModelConfig, PrintsMixturesThatReadBack) {
  for (const json& config : {mixtral(), qwen3_moe()}) {
    const model::Shape shape = parse_model_config(config.dump(), "");
    const json printed = json::parse(print_model_config(shape, {}));
    EXPECT_EQ(printed["model_type"], config["model_type"]);
    EXPECT_EQ(printed["architectures"], config["architectures"]);
    const model::Shape again = parse_model_config(printed.dump(), "");
    EXPECT_EQ(model::parameter_names(again), model::parameter_names(shape));
    EXPECT_EQ(model::total_parameters(again), model::total_parameters(shape));
    EXPECT_EQ(again.normalised_experts, shape.normalised_experts);
    EXPECT_EQ(again.experts_per_token, shape.experts_per_token);
  }
  model::Shape shape = parse_model_config(mixtral().dump(), "");
  shape.normalised_experts = false;
  const auto has_no_form = [&] {
    return failure<InputError>([&] { print_model_config(shape, {}); }).find("has no form") !=
           std::string::npos;
  };
  EXPECT_TRUE(has_no_form());
  shape.shared_ffn = 64;
  EXPECT_TRUE(has_no_form());
  shape.shared_gate = true;
  EXPECT_FALSE(has_no_form());
  shape.head_norms = true;
  EXPECT_TRUE(has_no_form());
}

// transformers refuses such a Llama, though it has head_dim.
TEST(ModelConfig, PrintsNoLlamaWhoseHeadsDoNotDivideItsWidth) {
  model::Shape shape{.hidden = 12, .heads = 8, .kv_heads = 8, .head_size = 4};
  EXPECT_EQ(failure<InputError>([&] { print_model_config(shape, {}); }),
            "model.hidden = 12, not a multiple of model.heads = 8, has no form in Hugging Face's files");
  shape.head_norms = true;
  EXPECT_EQ(parse_model_config(print_model_config(shape, {}), "").head_size, 4);
}

TEST(ModelConfig, ReadsRotarySettingsWhereNewerFilesHaveThem) {
  json config = llama31();
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = 250000.0;
  config.erase("rope_scaling");
  config.erase("rope_theta");
  EXPECT_EQ(parse_model_config(config.dump(), "").rope_theta, 250000.0);
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 3e4}};
  EXPECT_EQ(parse_model_config(config.dump(), "").rope_scaling.factor, 1.0);
}

TEST(ModelConfig, HasTheFormatsDefaults) {
  json config = llama31();
  for (const char* key : {"num_key_value_heads", "rope_theta", "rms_norm_eps", "tie_word_embeddings"})
    config.erase(key);
  config["rope_scaling"] = nullptr;
  const model::Shape shape = parse_model_config(config.dump(), "");
  EXPECT_EQ(shape.kv_heads, 32);
  EXPECT_EQ(shape.rope_theta, 10000.0);
  EXPECT_EQ(shape.norm_epsilon, 1e-6);
}

TEST(ModelConfig, RefusesByNameWhatChangesTheMathematics) {
  const std::pair<const char*, json> cases[] = {
      {"model_type", "gemma"},     {"hidden_act", "gelu"},         {"attention_bias", true},
      {"mlp_bias", true},          {"sliding_window", 4096},       {"quantization_config", json::object()},
      {"logit_softcapping", 30.0}, {"partial_rotary_factor", 0.5}, {"attention_dropout", 0.1},
      {"is_causal", false},        {"is_causal", nullptr}};
  for (const auto& [key, value] : cases) {
    EXPECT_TRUE(config_refusal(key, value).starts_with("config.json: " + std::string(key) + " = "))
        << key << config_refusal(key, value);
  }
  EXPECT_NE(
      config_refusal("rope_scaling", {{"type", "yarn"}, {"factor", 2.0}}).find("\"yarn\" is not supported"),
      std::string::npos);
  json scaling = llama31()["rope_scaling"];
  scaling["surprise"] = 2.0;
  EXPECT_NE(config_refusal("rope_scaling", scaling).find("surprise"), std::string::npos);
  EXPECT_EQ(config_refusal("sliding_window", nullptr), "");
  EXPECT_EQ(config_refusal("new_flag_that_is_off", false), "");
  EXPECT_EQ(config_refusal("is_causal", true), "");
}

TEST(ModelConfig, RefusesARotaryScalingThatIsIncompleteOrAbsurd) {
  const json whole = llama31()["rope_scaling"];
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    json scaling = whole;
    scaling.erase(key);
    EXPECT_EQ(config_refusal("rope_scaling", scaling),
              "config.json: rope_scaling: has no " + std::string(key));
    scaling[key] = -2;
    EXPECT_NE(config_refusal("rope_scaling", scaling).find(key), std::string::npos);
  }
  json scaling = whole;
  scaling["factor"] = 0.5;
  EXPECT_NE(config_refusal("rope_scaling", scaling).find("factor = 0.5 must be 1 or more"),
            std::string::npos);
  scaling = whole;
  scaling["high_freq_factor"] = 1.0;
  EXPECT_NE(config_refusal("rope_scaling", scaling).find("must be above low_freq_factor"), std::string::npos);
}

TEST(ModelConfig, ReadsBackWhatItPrints) {
  json config = llama31();
  config["head_dim"] = 64;
  config["tie_word_embeddings"] = true;
  for (const json& scaling : {config["rope_scaling"], json(nullptr)}) {
    config["rope_scaling"] = scaling;
    const model::Shape shape = parse_model_config(config.dump(), "");
    const std::string printed = print_model_config(shape, {.element_type = "bfloat16", .end_tokens = {7}});
    const model::Shape again = parse_model_config(printed, "");
    EXPECT_EQ(print_model_config(again, {.element_type = "bfloat16", .end_tokens = {7}}), printed);
    EXPECT_EQ(again.head_dim(), 64);
    EXPECT_EQ(json::parse(printed)["eos_token_id"], 7);
    EXPECT_EQ(json::parse(printed)["rope_scaling"], scaling);
  }
}

TEST(ModelConfig, RefusesMissingAndAbsurdValues) {
  for (const char* key :
       {"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size"}) {
    json config = llama31();
    config.erase(key);
    EXPECT_EQ(config_refusal(config), "config.json: has no " + std::string(key));
    for (const json& absurd :
         {json(0), json(-1), json(1.5), json("4"), json(std::int64_t{1} << 60), json(~0ull), json::array()}) {
      EXPECT_NE(config_refusal(key, absurd).find(key), std::string::npos) << key << absurd;
    }
  }
  EXPECT_NE(config_refusal("rms_norm_eps", 0.0), "");
  EXPECT_NE(config_refusal("tie_word_embeddings", "yes"), "");
  EXPECT_NE(config_refusal("num_attention_heads", 31).find("config.json: model.heads = 31"),
            std::string::npos);
}

TEST(ModelConfig, RefusesWhatIsNoJson) {
  const auto refused = [](std::string_view text) {
    return failure<InputError>([&] { parse_model_config(text, "config.json"); });
  };
  EXPECT_NE(refused("").find("is not JSON"), std::string::npos);
  EXPECT_NE(refused("{\"hidden_size\":").find("is not JSON"), std::string::npos);
  EXPECT_NE(refused("[]").find("is not a JSON object"), std::string::npos);
  EXPECT_NE(refused(std::string(1 << 19, '[')), "");
}

}  // namespace
}  // namespace penstock::files
