// SPDX-License-Identifier: Apache-2.0
#include "nn/record.h"

#include "nn/allocator.h"

namespace penstock::nn {

void recount(const LayerRecord& record) {
  for (const at::Tensor& tensor : record.tensors) recount(tensor, Category::Activations);
}

void recount(const WeightRecord& record) {
  for (const PendingProduct& product : record) {
    recount(product.grad_output, Category::WeightRecords);
    recount(product.input, Category::WeightRecords);
  }
}

void StorageBytes::add(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  const bool fresh = seen_.insert(tensor.storage().unsafeGetStorageImpl()).second;
  if (fresh) total_ += static_cast<Bytes>(tensor.storage().nbytes());
}

}  // namespace penstock::nn
