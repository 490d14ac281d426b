// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/convert_weights.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/option_text.h"
#include "base/text.h"
#include "cli/convert/byte_progress.h"
#include "cli/input/model_source.h"
#include "files/atomic_file.h"
#include "files/directory.h"
#include "files/elements.h"
#include "files/file_system.h"
#include "files/run_files.h"
#include "model/parameters.h"
#include "run/settle.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;
using files::ElementType;
using files::StoredTensor;

struct TypeName {
  std::string_view precision;
  ElementType type;
  std::string_view config;  // name in config.json
};
constexpr TypeName kTypes[] = {{"f32", ElementType::F32, "float32"},
                               {"bf16", ElementType::BF16, "bfloat16"},
                               {"f16", ElementType::F16, "float16"},
                               {"f64", ElementType::F64, "float64"}};

constexpr Bytes kUsualShard = 5'000'000'000;

// Removes trailing slashes.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// A folder that has a temporary name until it is complete.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path)
      : path_(without_slashes(path)), temporary_(files::temporary_name(path_)) {
    if (path_.empty()) throw InputError("-o \"\" names no folder");
    std::error_code error;
    const bool replaceable = fs::is_directory(path_, error) && fs::is_empty(path_, error);
    if (files::is_there(path_) && !replaceable)
      throw InputError(printable(path_, 500) + " already exists; name another target");
    const std::string parent = fs::path(temporary_).parent_path();
    if (!parent.empty() && !fs::is_directory(parent, error))
      throw InputError(printable(path_, 500) + " cannot be made: there is no folder \"" +
                       printable(parent, 500) + "\"");
    files::remove_all(temporary_);  // left by a killed process with the same id
    if (files::file_system().make_directory(temporary_) != 0) files::fail_to("cannot be made", path_);
  }
  ~NewFolder() { files::remove_all(temporary_); }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  std::string file(const std::string& name) const { return (fs::path(temporary_) / name).string(); }
  void publish() const { files::publish_directory(temporary_, path_); }

 private:
  std::string path_, temporary_;
};

ElementType stored_type(const StoredTensor& tensor, const std::string& precision) {
  const auto known = std::ranges::find(kTypes, precision, &TypeName::precision);
  return known == std::end(kTypes) ? tensor.type : known->type;
}

// The tensors of one file: names, types and shapes.
using Shard = std::vector<StoredTensor>;

Bytes bytes_of(const StoredTensor& tensor) {
  Bytes bytes = static_cast<Bytes>(files::size_of(tensor.type));
  for (const std::int64_t length : tensor.shape) bytes *= length;
  return bytes;
}

// Splits the model's tensors, in its order, into files of at most `most` bytes, unless one tensor is larger.
std::vector<Shard> shards_of(const ModelSource& source, const std::string& precision, Bytes most) {
  std::vector<Shard> shards(1);
  Bytes bytes = 0;
  for (const model::ParameterShape& parameter : model::parameter_shapes(source.shape)) {
    const StoredTensor& found = *source.weights.find(parameter.name);
    const StoredTensor tensor{parameter.name, stored_type(found, precision), parameter.sizes, {}};
    if (!shards.back().empty() && bytes + bytes_of(tensor) > most) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += bytes_of(tensor);
    shards.back().push_back(tensor);
  }
  return shards;
}

void write_shard(const std::string& path, const Shard& shard, const files::ModelWeights& weights,
                 ByteProgress& progress) {
  std::vector<std::byte> converted;
  files::write_safetensors(
      path, shard, {{"format", "pt"}}, [&](const StoredTensor& tensor, const files::ByteSink& sink) {
        const StoredTensor& found = *weights.find(tensor.name);
        const std::size_t from = files::size_of(found.type), to = files::size_of(tensor.type);
        weights.read(found, [&](std::span<const std::byte> part) {
          converted.resize(part.size() / from * to);
          if (files::convert_elements(part, found.type, converted, tensor.type) > 0)
            throw InputError(printable(tensor.name, 200) + ": has numbers that are too large for " +
                             std::string(files::name_of(tensor.type)) + "; use another --precision");
          sink(converted);
          progress.add(static_cast<Bytes>(part.size()));
        });
      });
}

std::string shard_name(std::size_t number, std::size_t count) {
  const auto five_digits = [](std::size_t value) {
    const std::string digits = std::to_string(value);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return "model-" + five_digits(number) + "-of-" + five_digits(count) + ".safetensors";
}

void write_hugging_face(const NewFolder& folder, const ModelSource& source, const std::vector<Shard>& shards,
                        ByteProgress& progress) {
  files::ConfigExtras extras = source.extras;
  extras.element_type = std::ranges::find(kTypes, shards[0][0].type, &TypeName::type)->config;
  const std::string config = files::print_model_config(source.shape, extras);  // may reject the shape
  std::map<std::string, std::string> files_of_tensors;
  Bytes total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors" : shard_name(i + 1, shards.size());
    write_shard(folder.file(name), shards[i], source.weights, progress);
    for (const StoredTensor& tensor : shards[i]) {
      files_of_tensors[tensor.name] = name;
      total += bytes_of(tensor);
    }
  }
  if (shards.size() > 1) {
    files::write_atomically(folder.file("model.safetensors.index.json"),
                            files::print_weight_map(files_of_tensors, static_cast<std::uint64_t>(total)));
  }
  files::write_atomically(folder.file("config.json"), config);
}

void write_penstock(const NewFolder& folder, const ModelSource& source, const std::vector<Shard>& shards,
                    const WeightsConversion& conversion, ByteProgress& progress) {
  write_shard(folder.file(files::kWeights), shards[0], source.weights, progress);
  run::Options options;
  options.model.shape = source.shape;
  run::take_config_extras(options.model, source.extras, run::Tokenizer::OfModel);
  options.model.weights = fs::absolute(fs::path(conversion.target) / files::kWeights).string();
  OptionTable table = run::describe(options);
  const bool mixture = source.shape.experts > 1;
  std::erase_if(table, [&](const Option& option) {
    return option.section != "model" && !(mixture && run::is_of_shape(option));
  });
  files::write_atomically(folder.file(files::kRunFile),
                          "# The model of " + printable(conversion.source, 500) +
                              ". Add the sections of a run, [data] first.\n" + print_toml(table));
}

}  // namespace

std::string convert_weights(const WeightsConversion& conversion) {
  const ModelSource source = open_model(conversion.source, conversion.config);
  const bool to_hugging_face =
      conversion.form.empty() ? !source.hugging_face : conversion.form == "huggingface";
  require(to_hugging_face || !conversion.shard_bytes,
          "--shard belongs to Hugging Face's form; leave it out: Penstock's has one file");
  require(to_hugging_face || utf8_prefix(conversion.target) == conversion.target.size(),
          "-o " + json_quote(conversion.target) + " is not UTF-8, as its run.toml would have to be");
  const NewFolder folder(conversion.target);
  const Bytes most = to_hugging_face ? conversion.shard_bytes.value_or(kUsualShard) : INT64_MAX;
  const std::vector<Shard> shards = shards_of(source, conversion.precision, most);
  Bytes total = 0;
  for (const Shard& shard : shards) {
    for (const StoredTensor& tensor : shard)
      total += static_cast<Bytes>(source.weights.find(tensor.name)->bytes.size());
  }
  ByteProgress progress(total);
  if (to_hugging_face) {
    write_hugging_face(folder, source, shards, progress);
  } else {
    write_penstock(folder, source, shards, conversion, progress);
  }
  folder.publish();
  progress.finish();
  return printable_lines(conversion.target) + ": " +
         print_count(static_cast<double>(model::total_parameters(source.shape))) + " parameters as " +
         (to_hugging_face ? "config.json and " : "run.toml and ") + std::to_string(shards.size()) +
         (shards.size() == 1 ? " file of weights" : " files of weights") + ", as " +
         printable_lines(source.description) + " describes it";
}

}  // namespace penstock::cli
