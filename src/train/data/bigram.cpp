// SPDX-License-Identifier: Apache-2.0
#include "train/data/bigram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace penstock::train {
namespace {

constexpr std::size_t kBytes = 256;
constexpr std::size_t kCountedPart = std::size_t{64} << 20;

// −log p(next | present), [present * 256 + next].
std::vector<double> table_of(std::string_view text, const std::function<void()>& after_part) {
  std::vector<double> counts(kBytes * kBytes, 1.0);
  for (std::size_t begin = 0; begin + 1 < text.size(); begin += kCountedPart) {
    const std::size_t end = std::min(begin + kCountedPart, text.size() - 1);
    for (std::size_t i = begin; i < end; ++i)
      counts[static_cast<unsigned char>(text[i]) * kBytes + static_cast<unsigned char>(text[i + 1])] += 1;
    if (after_part) after_part();
  }
  for (std::size_t present = 0; present < kBytes; ++present) {
    double sum = 0;
    for (std::size_t next = 0; next < kBytes; ++next) sum += counts[present * kBytes + next];
    for (std::size_t next = 0; next < kBytes; ++next) {
      double& entry = counts[present * kBytes + next];
      entry = std::log(sum / entry);
    }
  }
  return counts;
}

double loss_sum(const std::vector<double>& table, const at::Tensor& tokens, const at::Tensor& targets) {
  const auto* token = tokens.const_data_ptr<std::int64_t>();
  const auto* target = targets.const_data_ptr<std::int64_t>();
  double sum = 0;
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    if (target[i] >= 0)
      sum += table[static_cast<std::size_t>(token[i]) * kBytes + static_cast<std::size_t>(target[i])];
  }
  return sum;
}

}  // namespace

double bigram_loss(const TokenData& data, const std::function<void()>& after_part) {
  PENSTOCK_CHECK(data.evaluation_batches() > 0, "a loss needs something to be evaluated on");
  const std::vector<double> table = table_of(data.training_text(), after_part);
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t index = 0; index < data.evaluation_batches(); ++index) {
    const StepTokens batch = data.evaluation_batch(index);
    for (std::size_t j = 0; j < batch.tokens.size(); ++j)
      sum += loss_sum(table, batch.tokens[j], batch.targets[j]);
    count += batch.target_count;
    if (after_part) after_part();
  }
  return sum / static_cast<double>(count);
}

}  // namespace penstock::train
