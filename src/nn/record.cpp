// SPDX-License-Identifier: Apache-2.0
#include "nn/record.h"

#include <algorithm>

#include "backend/memory.h"
#include "base/error.h"

namespace penstock::nn {

model::SavedTensor part_of(Saved name) {
  using Part = model::SavedTensor;
  switch (name) {
    case Saved::LayerInput:
      return Part::LayerInput;
    case Saved::Norm1Scale:
    case Saved::Norm1Output:
      return Part::NormOneOutput;
    case Saved::QueryInput:
    case Saved::QueryScale:
    case Saved::KeyInput:
    case Saved::KeyScale:
    case Saved::Query:
      return Part::Query;
    case Saved::Key:
    case Saved::Value:
      return Part::KeyValue;
    case Saved::AttentionOutput:
    case Saved::LogSumExp:
      return Part::AttentionOutput;
    case Saved::Norm2Input:
      return Part::NormTwoInput;
    case Saved::Norm2Scale:
    case Saved::Norm2Output:
      return Part::NormTwoOutput;
    case Saved::Gate:
    case Saved::Up:
      return Part::GateUp;
    case Saved::Product:
      return Part::Product;
  }
  PENSTOCK_CHECK(false, "every saved tensor is part of a policy's");
}

void drop_unless(model::KeepSet keep, LayerRecord& record) {
  for_saved(record, [&](model::SavedTensor part, SavedKind, at::Tensor& tensor) {
    if (!keep.has(part)) tensor.reset();
  });
}

void append_leavable(const LayerRecord& record, bool keys_and_values, std::vector<c10::Storage>& storages) {
  for_saved(record, [&](model::SavedTensor part, SavedKind kind, const at::Tensor& tensor) {
    if (!tensor.defined() || kind == SavedKind::Statistics) return;
    if (part == model::SavedTensor::KeyValue && !keys_and_values) return;
    const bool known = std::ranges::any_of(storages, [&](const c10::Storage& storage) {
      return storage.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
    });
    if (!known) storages.push_back(tensor.storage());
  });
}

void recount(const LayerRecord& record) {
  for_saved(record, [](model::SavedTensor, SavedKind, const at::Tensor& tensor) {
    backend::recount(tensor, model::Category::Activations);
  });
}

void recount(const WeightRecord& record) {
  for_tensors(record,
              [](const at::Tensor& tensor) { backend::recount(tensor, model::Category::WeightRecords); });
}

void WeightRecord::end_gathered() {
  for (GatheredRows& rows : gathered) rows.finish();
}

void StorageBytes::add(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.storage().data() == nullptr) return;
  const bool fresh = seen_.insert(tensor.storage().unsafeGetStorageImpl()).second;
  if (fresh) total_ += static_cast<Bytes>(tensor.storage().nbytes());
}

}  // namespace penstock::nn
