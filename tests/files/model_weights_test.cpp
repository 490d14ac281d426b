// SPDX-License-Identifier: Apache-2.0
#include "files/model_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <list>

#include "base/error.h"
#include "failure.h"
#include "model/parameters.h"
#include "scratch.h"

namespace penstock::files {
namespace {

#define EXPECT_SAYS(text, words) EXPECT_NE(std::string(text).find(words), std::string::npos) << text

const model::Shape kShape{.layers = 2, .hidden = 8, .ffn = 12, .heads = 4, .kv_heads = 2, .vocab = 10};

// The tensors of a model, as files may have them.
struct Weights {
  Scratch scratch;
  std::list<std::string> bytes;
  std::vector<StoredTensor> tensors;

  explicit Weights(const model::Shape& shape = kShape) {
    for (const model::ParameterShape& parameter : model::parameter_shapes(shape))
      add(parameter.name, ElementType::F16, parameter.sizes);
  }
  void add(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape) {
    std::size_t count = size_of(type);
    for (const std::int64_t length : shape) count *= static_cast<std::size_t>(length);
    bytes.emplace_back(count, 'x');
    tensors.push_back({name, type, shape, std::as_bytes(std::span(bytes.back()))});
  }
  StoredTensor& named(const std::string& name) {
    return *std::ranges::find(tensors, name, &StoredTensor::name);
  }
  void write(const std::string& file) const { write_safetensors(scratch / file, tensors); }
  std::string refusal(const model::Shape& shape = kShape) {
    write("model.safetensors");
    return failure<InputError>([&] { ModelWeights(scratch.path()).check(shape); });
  }
};

TEST(ModelWeights, ReadsAFileAndAFolder) {
  const Weights weights;
  weights.write("model.safetensors");
  for (const std::string& path : {weights.scratch.path(), weights.scratch / "model.safetensors"}) {
    const ModelWeights read(path);
    read.check(kShape);
    EXPECT_EQ(read.find("model.norm.weight")->shape, std::vector<std::int64_t>{8});
    EXPECT_EQ(read.find("nothing"), nullptr);
  }
}

// Writes the tensors over files of `each`, with their index.
void write_shards(const Weights& weights, std::size_t each) {
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < weights.tensors.size(); i += each) {
    const std::string name = "part-" + std::to_string(i) + ".safetensors";
    const std::span part = std::span(weights.tensors).subspan(i, std::min(each, weights.tensors.size() - i));
    for (const StoredTensor& tensor : part) files[tensor.name] = name;
    write_safetensors(weights.scratch / name, part);
  }
  weights.scratch.write("model.safetensors.index.json", print_weight_map(files, 1));
}

TEST(ModelWeights, ReadsAModelOverAnyNumberOfFiles) {
  for (std::size_t each = 1; each < 25; each += 4) {
    const Weights weights;
    write_shards(weights, each);
    ModelWeights(weights.scratch.path()).check(kShape);
  }
}

TEST(ModelWeights, RefusesAnIndexThatDisagreesWithItsFiles) {
  const Weights weights;
  write_shards(weights, 5);
  const auto refusal = [&] { return failure<InputError>([&] { ModelWeights(weights.scratch.path()); }); };
  const std::string index = weights.scratch.read("model.safetensors.index.json");
  const auto changed = [&](const std::string& old_text, const std::string& new_text) {
    std::string text = index;
    text.replace(text.find(old_text), old_text.size(), new_text);
    weights.scratch.write("model.safetensors.index.json", text);
    return refusal();
  };
  EXPECT_SAYS(changed("\"model.norm.weight\"", "\"model.other.weight\""),
              "tensor \"model.norm.weight\" is in part-15.safetensors, but not in the index");
  EXPECT_SAYS(changed("part-5.", "part-0."), "but the index says part-0.safetensors");
  EXPECT_SAYS(changed("{\n    \"lm_head", "{\n    \"added\": \"part-0.safetensors\", \"lm_head"),
              "tensor \"added\" is not in part-0.safetensors, where the index says it is");
  weights.scratch.write("model.safetensors.index.json", index);
  std::filesystem::remove(weights.scratch / "part-10.safetensors");
  EXPECT_SAYS(refusal(), "part-10.safetensors: cannot be opened: No such file");
}

TEST(ModelWeights, RefusesADamagedIndex) {
  const auto refusal = [](std::string_view text) {
    return failure<InputError>([&] { parse_weight_map(text, "i.json"); });
  };
  EXPECT_EQ(refusal(R"({"weight_map": {"a": "b"}})"), "");
  EXPECT_SAYS(refusal("{"), "i.json: the index is not JSON");
  EXPECT_SAYS(refusal("{}"), "has no weight_map");
  EXPECT_SAYS(refusal(R"({"weight_map": []})"), "has no weight_map");
  EXPECT_SAYS(refusal(R"({"weight_map": {"a": 1}})"), "no file's name for tensor \"a\"");
  EXPECT_SAYS(refusal(R"({"weight_map": {"a": "x", "a": "y"}})"), "the name \"a\" twice");
  for (const char* file : {"../x", "/etc/passwd", "", "..", "a/b"})
    EXPECT_SAYS(refusal(R"({"weight_map": {"a": ")" + std::string(file) + "\"}}"), "in the index's folder");
}

TEST(ModelWeights, NamesWhatIsMissingExtraOrOfAnotherShape) {
  Weights missing;
  std::erase_if(missing.tensors, [](const StoredTensor& tensor) { return tensor.name == "lm_head.weight"; });
  EXPECT_SAYS(missing.refusal(), "has no tensor \"lm_head.weight\"");
  Weights extra;
  extra.add("model.layers.0.self_attn.q_proj.bias", ElementType::F32, {8});
  EXPECT_SAYS(extra.refusal(), "tensor \"model.layers.0.self_attn.q_proj.bias\" is not part of the model");
  Weights other;
  other.named("model.layers.1.mlp.up_proj.weight").shape = {8, 12};
  EXPECT_SAYS(other.refusal(),
              "tensor \"model.layers.1.mlp.up_proj.weight\" has shape [8, 12]; expected [12, 8]");
  Weights whole;
  whole.named("model.norm.weight").type = ElementType::I16;
  EXPECT_SAYS(whole.refusal(), "tensor \"model.norm.weight\" is I16; expected F32, BF16, F16 or F64");
  model::Shape deeper = kShape;
  deeper.layers = 4;
  EXPECT_SAYS(Weights().refusal(deeper), "; and 15 more");
}

// Names of that many would take gigabytes.
TEST(ModelWeights, RefusesMoreLayersOrExpertsThanThereAreTensors) {
  model::Shape absurd = kShape;
  absurd.layers = 1 << 24;
  EXPECT_SAYS(Weights().refusal(absurd), "has 21 tensors; a model of 16777216 layers has more");
  absurd.layers = 2;
  absurd.experts = 1 << 24;
  EXPECT_SAYS(Weights().refusal(absurd), "has 21 tensors; a model of 2 layers of 16777216 experts has more");
}

TEST(ModelWeights, PassesOverWhatTransformersPassesOver) {
  model::Shape tied = kShape;
  tied.tied_embeddings = true;
  Weights weights;  // has an lm_head.weight
  weights.add("model.layers.0.self_attn.rotary_emb.inv_freq", ElementType::F32, {1});
  EXPECT_EQ(weights.refusal(tied), "");
  EXPECT_EQ(Weights(tied).refusal(tied), "");
}

TEST(ModelWeights, RefusesAnOutputMatrixThatIsNotTheTiedEmbedding) {
  model::Shape tied = kShape;
  tied.tied_embeddings = true;
  Weights weights;
  for (std::string& bytes : weights.bytes)
    if (bytes.data() == reinterpret_cast<const char*>(weights.named("lm_head.weight").bytes.data()))
      bytes.back() = 'y';
  EXPECT_SAYS(weights.refusal(tied), "the output matrix lm_head.weight is not the embedding's");
  EXPECT_EQ(weights.refusal(), "");
}

// Access to the mapping would end the process there.
TEST(ModelWeights, NamesTheFileWhoseBytesCannotBeRead) {
  Weights weights(
      model::Shape{.layers = 1, .hidden = 64, .ffn = 64, .heads = 4, .kv_heads = 2, .vocab = 300});
  weights.write("model.safetensors");
  const ModelWeights opened(weights.scratch.path());
  const StoredTensor& tensor = *opened.find("model.embed_tokens.weight");
  std::string read;
  const auto append = [&](std::span<const std::byte> piece) { read.append(piece.size(), 'x'); };
  opened.read(tensor, append);
  EXPECT_EQ(read.size(), tensor.bytes.size());
  std::filesystem::resize_file(weights.scratch / "model.safetensors", 1);
  EXPECT_SAYS(failure<InputError>([&] { opened.read(tensor, append); }), "model.safetensors: ends at byte");
}

TEST(ModelWeights, ADanglingLinkIsNotTakenForAMissingFile) {
  Weights weights;
  EXPECT_EQ(weights.refusal(), "");
  std::filesystem::create_symlink("none", weights.scratch / "model.safetensors.index.json");
  EXPECT_SAYS(weights.refusal(), "model.safetensors.index.json: cannot be opened: No such file");
}

TEST(ModelWeights, NamesAFolderWithoutWeights) {
  const Scratch scratch;
  EXPECT_SAYS(failure<InputError>([&] { ModelWeights(scratch.path()); }),
              "has no model.safetensors.index.json, no model.safetensors and no weights.safetensors");
}

}  // namespace
}  // namespace penstock::files
