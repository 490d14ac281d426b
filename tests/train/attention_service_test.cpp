// SPDX-License-Identifier: Apache-2.0
// Attention that a device computes for another holds no more than is predicted.
#include "nn/attention_service.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include "backend/memory.h"
#include "nn/kernels/cpu/element.h"
#include "nn/tensor_checks.h"
#include "train/machine_probe.h"

namespace penstock::testing {
namespace {

struct Served {
  model::Precision precision;
  std::int64_t sequences, heads, kv_heads, tokens;
  std::vector<Tokens> keys;
};

at::ScalarType type_of(model::Precision precision) {
  return precision == model::Precision::BF16  ? at::kBFloat16
         : precision == model::Precision::F64 ? at::kDouble
                                              : at::kFloat;
}

Bytes peak_of(const Served& size, bool backward) {
  constexpr std::int64_t kHeadDim = 4;
  const at::ScalarType type = type_of(size.precision), wide = nn::kernels::accumulator_type(type);
  const auto drawn = [&](at::IntArrayRef sizes, at::ScalarType as) {
    return random_tensor(sizes, at::kDouble, 7).to(as);
  };
  const bool grouped = size.heads != size.kv_heads;
  const at::Tensor query = drawn({size.sequences, size.heads, size.tokens, kHeadDim}, type);
  const auto outputs = [&] {
    return grouped ? drawn({size.sequences, size.heads, size.tokens, kHeadDim}, type)
                   : drawn({size.sequences, size.tokens, size.heads, kHeadDim}, type).transpose(1, 2);
  };
  const at::Tensor grad_output = outputs(), output = outputs();
  const at::Tensor log_sum_exp = drawn({size.sequences, size.heads, size.tokens}, wide);
  std::vector<nn::AskedKeys> parts;
  for (const Tokens keys : size.keys) {
    parts.push_back({{drawn({size.sequences, size.kv_heads, keys, kHeadDim}, type),
                      drawn({size.sequences, keys, size.kv_heads, kHeadDim}, type).transpose(1, 2)}});
  }
  backend::Ledger ledger;
  const backend::LedgerScope scope(ledger);
  if (backward) {
    nn::attend_to_backward(grad_output, query, {output, log_sum_exp}, parts);
  } else {
    nn::attend_to(query, parts);
  }
  return ledger.peak(model::Category::Transient);
}

TEST(AttentionService, HoldsNoMoreThanIsPredicted) {
  backend::install_allocator();
  at::set_num_threads(1);
  const run::Machine machine = train::probe_machine(1);
  for (const auto precision : {model::Precision::F64, model::Precision::F32, model::Precision::BF16}) {
    const model::KernelSetting kernels = machine.kernels(precision, 1);
    for (const std::int64_t sequences : {1, 2}) {
      for (const std::int64_t kv_heads : {1, 2, 4}) {
        for (const std::int64_t tokens : {4, 5, 70}) {
          for (const std::vector<Tokens>& keys :
               std::vector<std::vector<Tokens>>{{5}, {2}, {5, 4}, {3, 5, 5}, {2, 64, 3}}) {
            for (const bool backward : {false, true}) {
              const Served size{precision, sequences, 4, kv_heads, tokens, keys};
              const Bytes predicted = model::served_temporaries(kernels,
                                                                {.sequences = sequences,
                                                                 .tokens = tokens,
                                                                 .earlier = keys,
                                                                 .heads = 4,
                                                                 .kv_heads = kv_heads,
                                                                 .head_dim = 4},
                                                                backward);
              const Bytes measured = peak_of(size, backward);
              SCOPED_TRACE(::testing::Message()
                           << model::name_of(precision) << ", " << sequences << " sequences, " << kv_heads
                           << " key heads, " << tokens << " tokens, " << keys.size() << " parts"
                           << (backward ? ", backward" : ""));
              EXPECT_LE(measured, predicted);
              if (kernels.tiled_attention) {
                EXPECT_GE(measured, predicted - predicted / 8);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::testing
