// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/convert_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "cli/train/check_weights.h"
#include "failure.h"
#include "faulty_files.h"
#include "files/checksum.h"
#include "files/model_config.h"
#include "files/model_weights.h"
#include "model/parameters.h"
#include "scratch.h"
#include "train/checkpoint/facts.h"
#include "train/checkpoint/layout.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

const model::Shape kShape{.layers = 2,
                          .hidden = 8,
                          .ffn = 12,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_size = 6,
                          .vocab = 300,
                          .rope_theta = 5000,
                          .rope_scaling = {8, 1, 4, 64},
                          .norm_epsilon = 1e-6,
                          .tied_embeddings = true};

// A folder in Hugging Face's form with drawn f32 weights.
void write_folder(const std::string& folder, const model::Shape& shape = kShape,
                  const files::ConfigExtras& extras = {.positions = 777}) {
  fs::create_directory(folder);
  std::vector<std::vector<float>> values;
  std::vector<files::StoredTensor> tensors;
  for (const model::ParameterShape& parameter : model::parameter_shapes(shape)) {
    std::int64_t count = 1;
    for (const std::int64_t length : parameter.sizes) count *= length;
    std::vector<float> drawn;
    for (std::int64_t i = 0; i < count; ++i)
      drawn.push_back(static_cast<float>(normal(hash(parameter.name), static_cast<std::uint64_t>(i))));
    values.push_back(std::move(drawn));
    tensors.push_back(
        {parameter.name, files::ElementType::F32, parameter.sizes, std::as_bytes(std::span(values.back()))});
  }
  files::write_safetensors(folder + "/model.safetensors", tensors);
  std::ofstream(folder + "/config.json") << files::print_model_config(shape, extras);
}

void expect_same_weights(const std::string& one, const std::string& other,
                         const model::Shape& shape = kShape) {
  const files::ModelWeights a(one), b(other);
  for (const std::string& name : model::parameter_names(shape)) {
    EXPECT_TRUE(std::ranges::equal(a.find(name)->bytes, b.find(name)->bytes)) << name;
  }
}

TEST(ConvertWeights, GoesToOurFormAndBackWithTheSameBits) {
  const Scratch scratch;
  write_folder(scratch / "there");
  convert_weights({.source = scratch / "there", .target = scratch / "ours"});
  convert_weights({.source = scratch / "ours", .target = scratch / "back"});
  convert_weights({.source = scratch / "ours/weights.safetensors", .target = scratch / "again"});
  for (const char* folder : {"ours", "back", "again"})
    expect_same_weights(scratch / "there", scratch / folder);
  const auto shape_text = [&](const std::string& folder) {
    return files::print_model_config(files::read_model_config(scratch / folder), {});
  };
  EXPECT_EQ(shape_text("back"), shape_text("there"));
  EXPECT_EQ(files::read_config_extras(scratch / "back").positions, 777);
}

TEST(ConvertWeights, AreFoundByAFileNameAloneInTheWorkingFolder) {
  const Scratch scratch;
  write_folder(scratch / "there");
  const fs::path before = fs::current_path();
  fs::current_path(scratch / "there");
  EXPECT_NO_THROW(convert_weights({.source = "model.safetensors", .target = scratch / "ours"}));
  fs::remove("config.json");
  const auto refused =
      failure<InputError>([&] { convert_weights({.source = "model.safetensors", .target = scratch / "x"}); });
  EXPECT_NE(refused.find("give --config"), std::string::npos) << refused;
  fs::current_path(before);
  expect_same_weights(scratch / "there", scratch / "ours");
}

TEST(ConvertWeights, GoToAFolderOfTheLongestName) {
  const Scratch scratch;
  write_folder(scratch / "there");
  const std::string longest = scratch / std::string(255, 'a');
  convert_weights({.source = scratch / "there", .target = longest});
  expect_same_weights(scratch / "there", longest);
}

TEST(ConvertWeights, OfMixturesGoThereAndBack) {
  for (const auto& [head_norms, shared] : {std::pair{false, false}, {true, false}, {false, true}}) {
    const Scratch scratch;
    model::Shape shape = kShape;
    shape.experts = 3;
    shape.experts_per_token = 2;
    shape.head_norms = head_norms;
    shape.normalised_experts = !head_norms;
    shape.shared_ffn = shared ? 9 : 0;
    shape.shared_gate = shared;
    write_folder(scratch / "there", shape);
    convert_weights({.source = scratch / "there", .target = scratch / "ours"});
    convert_weights({.source = scratch / "ours", .target = scratch / "back"});
    const char* expert = head_norms || shared ? "model.layers.1.mlp.experts.2.down_proj.weight"
                                              : "model.layers.1.block_sparse_moe.experts.2.w2.weight";
    for (const char* folder : {"ours", "back"}) {
      expect_same_weights(scratch / "there", scratch / folder, shape);
      ASSERT_NE(files::ModelWeights(scratch / folder).find(expert), nullptr);
      EXPECT_EQ(files::ModelWeights(scratch / folder).find(expert)->shape,
                (std::vector<std::int64_t>{shape.hidden, shape.ffn}));
    }
    const model::Shape back = files::read_model_config(scratch / "back");
    EXPECT_EQ(back.experts_per_token, 2);
    EXPECT_EQ(back.head_norms, head_norms);
    EXPECT_EQ(back.normalised_experts, !head_norms);
    EXPECT_EQ(back.shared_ffn, shape.shared_ffn);
  }
}

TEST(ConvertWeights, NamesTheWeightsOfAMissingExpert) {
  const Scratch scratch;
  model::Shape shape = kShape;
  shape.experts = 3;
  write_folder(scratch / "there", shape);
  std::string config = scratch.read("there/config.json");
  const std::string three = "\"num_local_experts\": 3";
  config.replace(config.find(three), three.size(), "\"num_local_experts\": 4");
  scratch.write("there/config.json", config);
  const std::string refused = failure<InputError>(
      [&] { convert_weights({.source = scratch / "there", .target = scratch / "ours"}); });
  EXPECT_NE(refused.find("block_sparse_moe.experts.3.w1.weight"), std::string::npos) << refused;
  EXPECT_FALSE(fs::exists(scratch / "ours"));
}

// A disk on which no file can be begun.
class DiskWithoutFiles final : public FaultyFiles {
 public:
  int open(const std::string&, files::OpenFor) override {
    errno = ENOSPC;
    return -1;
  }
};

TEST(ConvertWeights, RefusesAModelWithoutAFormBeforeItWritesItsWeights) {
  const Scratch scratch;
  model::Shape shape = kShape;
  shape.experts = 3;
  write_folder(scratch / "there", shape);
  convert_weights({.source = scratch / "there", .target = scratch / "ours"});
  std::string text = scratch.read("ours/run.toml");
  const std::string known = "norm_topk = true";
  ASSERT_NE(text.find(known), std::string::npos) << text;
  scratch.write("ours/run.toml", text.replace(text.find(known), known.size(), "norm_topk = false"));
  DiskWithoutFiles disk;
  const std::string refused =
      failure<InputError>([&] { convert_weights({.source = scratch / "ours", .target = scratch / "back"}); });
  EXPECT_NE(refused.find("has no form in Hugging Face's files"), std::string::npos) << refused;
}

// A model of which one is lost does not stop where it should.
TEST(ConvertWeights, KeepsTheTokensThatBeginAndEndText) {
  const Scratch scratch;
  for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>{}, {291}, {291, 292}}) {
    SCOPED_TRACE(ends.size());
    write_folder(scratch / "there", kShape,
                 {.positions = 777, .begin_token = 290, .padding_token = 293, .end_tokens = ends});
    convert_weights({.source = scratch / "there", .target = scratch / "copy", .form = "huggingface"});
    fs::create_directory(scratch / "run");  // of a run that began with the folder's configuration
    fs::copy(scratch / "there/model.safetensors", scratch / "run/weights.safetensors");
    scratch.write("run/run.toml", "[model]\nconfig = \"" + scratch / "there" +
                                      "\"\n[data]\nmegatron = \"ids\"\nseq_len = 800\n");
    convert_weights({.source = scratch / "run", .target = scratch / "back"});
    convert_weights({.source = scratch / "there", .target = scratch / "ours"});
    convert_weights({.source = scratch / "ours", .target = scratch / "again"});
    for (const char* folder : {"copy", "back", "again"}) {
      const files::ConfigExtras extras = files::read_config_extras(scratch / folder);
      EXPECT_EQ(extras.begin_token, 290) << folder;
      EXPECT_EQ(extras.end_tokens, ends) << folder;
      EXPECT_EQ(extras.padding_token, 293) << folder;
    }
    EXPECT_EQ(files::read_config_extras(scratch / "copy").positions, 777);
    EXPECT_EQ(files::read_config_extras(scratch / "again").positions, 777);
    EXPECT_EQ(files::read_config_extras(scratch / "back").positions, 800) << "the run's";
    for (const char* folder : {"there", "copy", "run", "back", "ours", "again"})
      fs::remove_all(scratch / folder);
  }
}

// A run on a text trains on bytes, whose tokens are known; what its file says comes first.
TEST(ConvertWeights, WritesTheTokensOfBytesForARunOnAText) {
  const Scratch scratch;
  write_folder(scratch / "there", kShape, {.begin_token = 290, .padding_token = 293, .end_tokens = {291}});
  fs::create_directory(scratch / "run");
  fs::copy(scratch / "there/model.safetensors", scratch / "run/weights.safetensors");
  const auto extras_with = [&](const std::string& key) {
    scratch.write("run/run.toml",
                  "[model]\nconfig = \"" + scratch / "there" + "\"\n" + key + "\n[data]\ntext = \"text\"\n");
    convert_weights({.source = scratch / "run", .target = scratch / "back"});
    const files::ConfigExtras extras = files::read_config_extras(scratch / "back");
    fs::remove_all(scratch / "back");
    return extras;
  };
  const files::ConfigExtras bytes = extras_with("");
  EXPECT_EQ(bytes.begin_token, 256);
  EXPECT_EQ(bytes.end_tokens, std::vector<std::int64_t>{257});
  EXPECT_EQ(bytes.padding_token, 258);
  const files::ConfigExtras given = extras_with("end_tokens = [3, 4]");
  EXPECT_EQ(given.begin_token, 256);
  EXPECT_EQ(given.end_tokens, (std::vector<std::int64_t>{3, 4}));
}

TEST(ConvertWeights, CutsLongModelsIntoFilesWithAnIndex) {
  const Scratch scratch;
  write_folder(scratch / "there");
  EXPECT_NE(failure<InputError>([&] {
              convert_weights({.source = scratch / "there", .target = scratch / "one", .shard_bytes = 1000});
            }).find("--shard belongs to Hugging Face's form"),
            std::string::npos);
  convert_weights(
      {.source = scratch / "there", .target = scratch / "cut", .form = "huggingface", .shard_bytes = 1000});
  const auto files = std::distance(fs::directory_iterator(scratch / "cut"), fs::directory_iterator());
  ASSERT_GT(files, 4);  // the configuration, the index, and more than two of weights
  std::string count = std::to_string(files - 2);
  count.insert(0, 5 - count.size(), '0');
  EXPECT_TRUE(fs::exists(scratch / "cut/model-00001-of-" + count + ".safetensors"));
  expect_same_weights(scratch / "there", scratch / "cut");
  EXPECT_EQ(files::read_config_extras(scratch / "cut").positions, 777);
}

TEST(ConvertWeights, RefusesNumbersThatThePrecisionDoesNotHold) {
  const Scratch scratch;
  write_folder(scratch / "there");
  convert_weights({.source = scratch / "there", .target = scratch / "ours", .precision = "f64"});
  files::ModelWeights weights(scratch / "ours/weights.safetensors");
  std::vector<files::StoredTensor> tensors;
  std::vector<double> large(static_cast<std::size_t>(kShape.hidden), 65520);  // rounds to f16's infinity
  for (const model::ParameterShape& parameter : model::parameter_shapes(kShape)) {
    tensors.push_back(*weights.find(parameter.name));
    if (parameter.name == "model.norm.weight") tensors.back().bytes = std::as_bytes(std::span(large));
  }
  files::write_safetensors(scratch / "ours/large.safetensors", tensors, {});
  const auto refusal = [&](const std::string& precision) {
    return failure<InputError>([&] {
      convert_weights({.source = scratch / "ours/large.safetensors",
                       .target = scratch / precision,
                       .form = "huggingface",
                       .precision = precision});
    });
  };
  EXPECT_NE(refusal("f16").find("model.norm.weight: has numbers that are too large for F16"),
            std::string::npos)
      << refusal("f16");
  EXPECT_FALSE(fs::exists(scratch / "f16"));
  EXPECT_EQ(refusal("bf16"), "");
}

TEST(ConvertWeights, RoundsToAShorterPrecision) {
  const Scratch scratch;
  write_folder(scratch / "there");
  convert_weights(
      {.source = scratch / "there", .target = scratch / "short", .form = "huggingface", .precision = "bf16"});
  fs::create_directory(scratch / "long");
  convert_weights(
      {.source = scratch / "short", .target = scratch / "long/", .form = "huggingface", .precision = "f32"});
  EXPECT_NE(scratch.read("short/config.json").find("\"torch_dtype\": \"bfloat16\""), std::string::npos);
  const files::ModelWeights exact(scratch / "there"), rounded(scratch / "long");
  for (const std::string& name : model::parameter_names(kShape)) {
    const auto* a = reinterpret_cast<const float*>(exact.find(name)->bytes.data());
    const auto* b = reinterpret_cast<const float*>(rounded.find(name)->bytes.data());
    for (std::size_t i = 0; i < exact.find(name)->bytes.size() / 4; ++i)
      ASSERT_NEAR(a[i], b[i], std::abs(a[i]) / 256) << name << i;
  }
}

// What a checkpoint says of the weights in this folder, which has an index.
void write_facts(const std::string& folder) {
  train::CheckpointFacts facts{.index = files::checksum(contents_of(fs::path(folder) / train::kWeightIndex))};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const files::Safetensors file(entry.path().string());
    train::FileSums sums{.file = entry.path().filename().string(), .head = files::checksum(file.head())};
    for (const files::StoredTensor& tensor : file.tensors())
      sums.tensors.emplace_back(tensor.name, files::word_sum(tensor.bytes));
    facts.files.push_back(std::move(sums));
  }
  std::ofstream(fs::path(folder) / train::kCheckpointFacts) << to_json(facts);
}

TEST(ConvertWeights, RefusesACheckpointOfOtherBytesThanItRecorded) {
  const Scratch scratch;
  write_folder(scratch / "there");
  const std::string checkpoint = scratch / "step-000001.damaged";
  convert_weights(
      {.source = scratch / "there", .target = checkpoint, .form = "huggingface", .shard_bytes = 1000});
  write_facts(checkpoint);
  convert_weights({.source = checkpoint, .target = scratch / "sound"});
  check_sums_of_weights({.weights = checkpoint}, {});
  const std::vector<std::string> hosts{"a", "b", "a"};
  for (const auto& [file, bytes] : files_below(checkpoint)) {
    if (!file.ends_with(".safetensors")) continue;
    std::string flipped = bytes;
    flipped.back() = static_cast<char>(flipped.back() ^ 1);
    scratch.write("step-000001.damaged/" + file, flipped);
    const std::string said = file + ": tensor \"";
    EXPECT_NE(failure<InputError>([&] {
                convert_weights({.source = checkpoint, .target = scratch / "x"});
              }).find(said),
              std::string::npos);
    const auto said_by = [&](int rank) {
      return failure<InputError>(
          [&] { check_sums_of_weights({.weights = checkpoint}, share_on_host(hosts, rank)); });
    };
    const std::string key = said_by(1);
    EXPECT_TRUE(key.starts_with("model.weights: ") && key.find(said) != key.npos) << key;
    EXPECT_NE(said_by(0).empty(), said_by(2).empty()) << "each host reads all of its copy once";
    scratch.write("step-000001.damaged/" + file, bytes);
  }
  EXPECT_FALSE(fs::exists(scratch / "x"));
}

TEST(InitialWeights, OfOtherBytesHaveAnotherSum) {
  const Scratch scratch;
  EXPECT_FALSE(sum_of_weights({}));
  for (const char* folder : {"one", "same", "other"}) write_folder(scratch / folder);
  std::string bytes = scratch.read("other/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  scratch.write("other/model.safetensors", bytes);
  const auto sum = [&](const char* folder) {
    return sum_of_weights({.weights = scratch / folder, .shape = kShape});
  };
  EXPECT_TRUE(sum("one"));
  EXPECT_EQ(sum("one"), sum("same"));
  EXPECT_NE(sum("one"), sum("other"));
}

TEST(ConvertWeights, RefusesWhatItCannotReadOrWouldWriteOver) {
  const Scratch scratch;
  write_folder(scratch / "there");
  const auto refusal = [&](const WeightsConversion& conversion) {
    return failure<InputError>([&] { convert_weights(conversion); });
  };
  EXPECT_NE(refusal({.source = scratch / "none", .target = scratch / "x"}).find("no such file"),
            std::string::npos);
  EXPECT_NE(refusal({.source = scratch / "there", .target = scratch / "there"}).find("already exists"),
            std::string::npos);
  scratch.write("empty", "");
  EXPECT_NE(refusal({.source = scratch / "there", .target = scratch / "empty"}).find("already exists"),
            std::string::npos);
  fs::remove(scratch / "empty");
  fs::remove(scratch / "there/config.json");
  EXPECT_NE(refusal({.source = scratch / "there", .target = scratch / "x"}).find("give --config"),
            std::string::npos);
  scratch.write("there/run.toml", "[model]\nlayers = 3\n");
  EXPECT_NE(refusal({.source = scratch / "there", .target = scratch / "x"}).find("has shape"),
            std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 1);
}

}  // namespace
}  // namespace penstock::cli
