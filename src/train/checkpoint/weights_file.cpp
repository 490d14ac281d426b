// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/weights_file.h"

#include <filesystem>
#include <utility>

#include "backend/device.h"
#include "base/error.h"
#include "files/directory.h"
#include "files/elements.h"
#include "files/file_system.h"
#include "model/parameters.h"
#include "nn/groups/tensor_bytes.h"
#include "train/checkpoint/all_at_work.h"
#include "train/checkpoint/file_share.h"
#include "train/checkpoint/gathered_share.h"

namespace penstock::train {
namespace {

std::string described(files::ElementType type, const std::vector<std::int64_t>& shape) {
  std::string text = std::string(name_of(type)) + " of [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

template <class Byte>
std::span<Byte> elements_of(std::span<Byte> bytes, files::ElementType type, std::int64_t begin,
                            std::int64_t count) {
  const std::size_t size = size_of(type);
  return bytes.subspan(static_cast<std::size_t>(begin) * size, static_cast<std::size_t>(count) * size);
}

// Copies the parameter's own part from a whole tensor of any floating-point format.
void copy_part(const files::StoredTensor& whole, const nn::Parameter& parameter, const at::Tensor& tensor) {
  const files::ElementType type = element_type(tensor);
  backend::change_on_host(tensor, [&](const at::Tensor& values) {
    const std::span<std::byte> own = nn::host_bytes_of_tensor(values);
    for (const mesh::Range& range : mesh::ranges_of(parameter.shard, parameter.sizes, parameter.share())) {
      files::convert_elements(elements_of(whole.bytes, whole.type, range.begin, range.count), whole.type,
                              elements_of(own, type, range.own_begin, range.count), type);
    }
  });
}

// Writes under a temporary name; removes that file when writing or renaming fails.
void write_together(const std::string& path, const FileShare& share, comm::World world, bool gather) {
  const std::string temporary = path + ".part";
  try {
    if (gather) {
      write_gathered_share(temporary, share, world);
    } else {
      AllAtWork work(world);
      write_share(temporary, share, [&] { work.still_working(); });
      work.end();
    }
    if (world->rank() != 0) return;
    if (files::file_system().rename(temporary, path) != 0)
      files::fail_to("cannot be renamed to its name", path);
  } catch (...) {
    files::file_system().remove(temporary);
    throw;
  }
  files::flush_directory(std::filesystem::path(path).parent_path().string());
}

}  // namespace

files::ElementType element_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? files::ElementType::F64 : files::ElementType::F32;
}

std::string stored_name(const nn::Parameter& parameter) {
  return parameter.tied ? model::kEmbeddingName : parameter.name;
}

void read_part(const files::StoredTensor* stored, const std::string& name, const std::string& path,
               const nn::Parameter& parameter, const at::Tensor& tensor) {
  if (!stored) throw InputError(path + ": has no tensor \"" + name + "\"");
  const files::ElementType type = element_type(tensor);
  if (stored->shape != parameter.sizes || stored->type != type) {
    throw InputError(path + ": tensor \"" + name + "\" is " + described(stored->type, stored->shape) +
                     "; the model's is " + described(type, parameter.sizes));
  }
  copy_part(*stored, parameter, tensor);
}

void write_weights(const std::string& path, const model::Shape& shape,
                   const std::vector<nn::Parameter*>& parameters, comm::World world, bool gather) {
  OwnedTensors owned;
  for (const nn::Parameter* parameter : parameters) {
    if (parameter->written().count > 0)
      owned.emplace(parameter->name, TensorSource{parameter, parameter->master});
  }
  const files::ElementType type = element_type(parameters.front()->master);
  std::vector<files::StoredTensor> whole;
  for (model::ParameterShape& parameter : model::parameter_shapes(shape)) {
    whole.push_back({parameter.name, type, std::move(parameter.sizes), {}});
  }
  write_together(path, share_of_file(whole, owned), world, gather);
}

void load_weights(const files::ModelWeights& weights, const std::vector<nn::Parameter*>& parameters,
                  const std::function<void()>& after_tensor) {
  for (const nn::Parameter* parameter : parameters) {
    const files::StoredTensor* stored = weights.find(stored_name(*parameter));
    PENSTOCK_CHECK(stored && stored->shape == parameter->sizes, "the weights have been checked");
    copy_part(*stored, *parameter, parameter->master);
    if (after_tensor) after_tensor();
  }
}

void read_weights(const std::string& path, nn::Stage& stage) {
  const files::Safetensors file(path);
  for (nn::Parameter& parameter : stage.parameters()) {
    const std::string name = stored_name(parameter);
    read_part(file.find(name), name, path, parameter, parameter.master);
  }
  stage.weights_from_masters();
}

}  // namespace penstock::train
