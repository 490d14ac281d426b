// SPDX-License-Identifier: Apache-2.0
#include "nn/record.h"

namespace penstock::nn {

void StorageBytes::add(const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  const bool fresh = seen_.insert(tensor.storage().unsafeGetStorageImpl()).second;
  if (fresh) total_ += static_cast<Bytes>(tensor.storage().nbytes());
}

}  // namespace penstock::nn
