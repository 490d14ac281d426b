// SPDX-License-Identifier: Apache-2.0
// A card for tests on machines without one: a device of LibTorch's (PrivateUse1) whose memory is the host's
// and whose operations are the host's. LibTorch refuses to mix its tensors with the host's, as it does with a
// card's; so a program that runs on it has all its tensors where they belong.
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "backend/device.h"

namespace penstock::backend {

c10::Device compute_device() { return {c10::DeviceType::PrivateUse1, 0}; }

void require_device() {}

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

// Memory of the host's allocator, which accounts it, under the name of the card.
class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    c10::DataPtr host = c10::GetCPUAllocator()->allocate(bytes);
    void* const data = host.get();
    const c10::DeleterFnPtr deleter = host.get_deleter();
    return {data, host.release_context(), deleter, compute_device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return c10::GetCPUAllocator()->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

Memory& memory() {
  static Memory instance;
  return instance;
}

// The same memory as a tensor of the host.
at::Tensor on_the_host(const at::Tensor& x) {
  if (x.device().is_cpu()) return x;
  return at::from_blob(x.mutable_data_ptr(), x.sizes(), x.strides(), at::dtype(x.scalar_type()));
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &memory(), kKeys, type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &memory(), kKeys, type.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  on_the_host(to).copy_(on_the_host(from));
  return to;
}

// Where an operation makes its result anew.
at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    const at::Tensor room = at::detail::empty_generic(from.sizes(), &memory(), kKeys, to.scalar_type(), {});
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(room.storage());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return copy_from(from, to, false);
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, all) {
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, own) {
  own.impl("empty.memory_format", &empty);
  own.impl("empty_strided", &empty_strided);
  own.impl("_copy_from", &copy_from);
  own.impl("_copy_from_and_resize", &copy_from_and_resize);
  own.impl("as_strided", &at::native::as_strided_tensorimpl);
  own.impl("view", &at::native::view);
  own.impl("_reshape_alias", &at::native::_reshape_alias);
}

namespace {

using Guard = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>;
const c10::impl::DeviceGuardImplRegistrar guard(c10::DeviceType::PrivateUse1, new Guard);
const bool allocates = [] {
  c10::SetAllocator(c10::DeviceType::PrivateUse1, &memory());
  return true;
}();

}  // namespace
}  // namespace penstock::backend
