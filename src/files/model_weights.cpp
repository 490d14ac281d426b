// SPDX-License-Identifier: Apache-2.0
#include "files/model_weights.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "files/checksum.h"
#include "files/elements.h"
#include "files/run_files.h"
#include "files/strict_json.h"
#include "model/parameters.h"

namespace penstock::files {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestIndex = 100'000'000;
constexpr int kDeepestIndex = 4;
constexpr std::size_t kNamed = 3;  // errors listed in one message
constexpr const char* kIndexName = "model.safetensors.index.json";

std::string shown(const std::string& path) { return printable(path, 500); }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> lengths;
  for (const std::int64_t length : shape) lengths.push_back(std::to_string(length));
  return "[" + join(lengths, ", ") + "]";
}

std::string tensor_text(std::string_view name) { return "tensor \"" + printable(name, 200) + "\""; }

// "a, b, c and 5 more"
std::string some_of(std::vector<std::string> faults) {
  const std::size_t more = faults.size() > kNamed ? faults.size() - kNamed : 0;
  faults.resize(faults.size() - more);
  return join(faults, "; ") + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
}

bool is_passed_over(std::string_view name, const model::Shape& shape) {
  return name.ends_with(".rotary_emb.inv_freq") || (shape.tied_embeddings && name == model::kOutputName);
}

std::string fault_of(const model::ParameterShape& wanted, const StoredTensor* found) {
  if (found == nullptr) return "has no " + tensor_text(wanted.name);
  if (found->shape != wanted.sizes) {
    return tensor_text(wanted.name) + " has shape " + shape_text(found->shape) + "; expected " +
           shape_text(wanted.sizes);
  }
  if (!is_float(found->type)) {
    return tensor_text(wanted.name) + " is " + std::string(name_of(found->type)) +
           "; expected F32, BF16, F16 or F64";
  }
  return {};
}

}  // namespace

std::string weights_in(const std::string& folder) {
  for (const char* name : {kIndexName, "model.safetensors", kWeights}) {
    const std::string file = (fs::path(folder) / name).string();
    if (is_there(file)) return file;
  }
  return {};
}

ModelWeights::ModelWeights(const std::string& path) : path_(path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    map_folder();
  } else {
    files_.emplace_back(path);
  }
  for (const Safetensors& file : files_) {
    for (const StoredTensor& tensor : file.tensors()) tensors_.emplace(tensor.name, &tensor);
  }
}

void ModelWeights::map_folder() {
  const std::string file = weights_in(path_);
  if (file.empty())
    throw InputError(shown(path_) + ": has no " + kIndexName +
                     ", no model.safetensors and no weights.safetensors");
  if (fs::path(file).filename() == kIndexName) return map_index(file);
  files_.emplace_back(file);
}

void ModelWeights::map_index(const std::string& index) {
  const auto wanted = parse_weight_map(read_text(index, kLongestIndex), shown(index));
  std::set<std::string> names;
  for (const auto& [tensor, file] : wanted) names.insert(file);
  std::set<std::string_view> found;
  for (const std::string& name : names) {
    on_behalf_of(shown(index), [&] { files_.emplace_back((fs::path(path_) / name).string()); });
    for (const StoredTensor& tensor : files_.back().tensors()) {
      const auto entry = wanted.find(tensor.name);
      if (entry == wanted.end() || entry->second != name) {
        throw InputError(
            shown(index) + ": " + tensor_text(tensor.name) + " is in " + printable(name, 200) + ", but " +
            (entry == wanted.end() ? "not in the index" : "the index says " + printable(entry->second, 200)));
      }
      found.insert(entry->first);
    }
  }
  for (const auto& [tensor, file] : wanted) {
    if (!found.contains(tensor)) {
      throw InputError(shown(index) + ": " + tensor_text(tensor) + " is not in " + printable(file, 200) +
                       ", where the index says it is");
    }
  }
}

const StoredTensor* ModelWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

const Safetensors& ModelWeights::file_of(const StoredTensor& tensor) const {
  const auto holds = [&](const Safetensors& file) {  // a model may have too many tensors to compare names
    const StoredTensor* begin = file.tensors().data();
    return !std::less()(&tensor, begin) && std::less()(&tensor, begin + file.tensors().size());
  };
  const auto file = std::ranges::find_if(files_, holds);
  PENSTOCK_CHECK(file != files_.end(), "the tensor is one of these weights");
  return *file;
}

void ModelWeights::read(const StoredTensor& tensor, const InputFile::Visit& visit) const {
  const Safetensors& file = file_of(tensor);
  InputFile(file.path()).read(file.begin_of(tensor), tensor.bytes.size(), visit);
}

bool ModelWeights::are_equal(const StoredTensor& a, const StoredTensor& b) const {
  const auto sum_of = [&](const StoredTensor& tensor) {
    const Safetensors& file = file_of(tensor);
    InputFile input(file.path());
    return word_sum(input, file.begin_of(tensor), tensor.bytes.size());
  };
  return a.type == b.type && a.shape == b.shape && sum_of(a) == sum_of(b);
}

void ModelWeights::check(const model::Shape& shape) const {
  // Every layer and expert has several tensors. Names are built only for a plausible number of them.
  if (shape.layers * shape.experts > static_cast<std::int64_t>(tensors_.size())) {
    const std::string experts = shape.experts > 1 ? " of " + std::to_string(shape.experts) + " experts" : "";
    throw InputError(shown(path_) + ": has " + std::to_string(tensors_.size()) + " tensors; a model of " +
                     std::to_string(shape.layers) + " layers" + experts + " has more");
  }
  std::vector<std::string> faults;
  std::set<std::string, std::less<>> known;
  for (const model::ParameterShape& wanted : model::parameter_shapes(shape)) {
    const std::string fault = fault_of(wanted, find(wanted.name));
    if (!fault.empty()) faults.push_back(fault);
    known.insert(wanted.name);
  }
  for (const auto& [name, tensor] : tensors_) {
    if (!known.contains(name) && !is_passed_over(name, shape))
      faults.push_back(tensor_text(name) + " is not part of the model");
  }
  const StoredTensor *embedding = find(model::kEmbeddingName), *output = find(model::kOutputName);
  if (shape.tied_embeddings && embedding && output && !are_equal(*embedding, *output))
    faults.push_back("the output matrix " + output->name +
                     " is not the embedding's, but the model has tied embeddings; set model.tied_embeddings, "
                     "or tie_word_embeddings of config.json, to false");
  if (!faults.empty()) throw InputError(shown(path_) + ": " + some_of(std::move(faults)));
}

std::map<std::string, std::string> parse_weight_map(std::string_view text, std::string_view origin) {
  const auto fail = [&](const std::string& what) { throw InputError(std::string(origin) + ": " + what); };
  const auto document = parse_strictly(text, origin, "the index", kDeepestIndex);
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object())
    fail("has no weight_map, an object of tensors' names and their files");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : document["weight_map"].items()) {
    if (!file.is_string()) fail("the weight_map has no file's name for " + tensor_text(tensor));
    const auto name = file.get<std::string>();
    const bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
                       name.find('\0') == name.npos;
    if (!plain) {
      fail("the weight_map has \"" + printable(name, 200) + "\" for " + tensor_text(tensor) +
           "; expected the name of a file in the index's folder");
    }
    files.emplace(tensor, name);
  }
  return files;
}

std::string print_weight_map(const std::map<std::string, std::string>& files,
                             std::optional<std::uint64_t> total_bytes) {
  auto metadata = nlohmann::ordered_json::object();
  if (total_bytes) metadata["total_size"] = *total_bytes;
  const nlohmann::ordered_json document{{"metadata", metadata}, {"weight_map", files}};
  return document.dump(2) + "\n";
}

}  // namespace penstock::files
