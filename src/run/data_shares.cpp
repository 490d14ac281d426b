// SPDX-License-Identifier: Apache-2.0
#include "run/data_shares.h"

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace penstock::run {
namespace {

void check_shares(const Numbers& shares, std::size_t prefixes) {
  require(shares.empty() || shares.size() == prefixes,
          "data.megatron_weights has " + counted(std::ssize(shares), "number") + ", but data.megatron has " +
              std::to_string(prefixes) + (prefixes == 1 ? " prefix" : " prefixes") + "; give one for each");
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (const double share : shares) {
    require(std::isfinite(sum) && share * kMixturePeriod >= sum,
            "data.megatron_weights has " + exact_number(share) + " of " + exact_number(sum) +
                " in all; use at least one part in " + std::to_string(kMixturePeriod));
  }
}

}  // namespace

std::vector<double> parse_split(std::string_view split) {
  std::vector<double> shares;
  bool good = true;
  for (const std::string_view part : penstock::split(split, ',')) {
    const auto share = parse_number(trim(part));
    good = good && share && *share >= 0;
    shares.push_back(share.value_or(0));
  }
  require(good && shares.size() <= 3 && shares[0] > 0,
          "data.split = " + json_quote(split) +
              " is not a split; give the shares of training, validation and test, as in \"969,30,1\"");
  shares.resize(3);
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

void settle_mask(DataOptions& data) {
  require(data.text.empty() || data.mask != "documents",
          "data.mask = \"documents\" needs data with documents, as data.megatron; data.text is one text: "
          "use \"none\"");
  if (data.mask == "auto") data.mask = data.megatron.empty() ? "none" : "documents";
}

void settle_packing(DataOptions& data, std::int64_t batch) {
  const std::string given = "data.packing = " + json_quote(data.packing);
  require(data.packing == "concat" || data.mask == "documents",
          given + " keeps documents apart, and data.mask = " + json_quote(data.mask) +
              " does not: use data.packing = \"concat\"" +
              (data.megatron.empty() ? "" : ", or data.mask = \"documents\""));
  require(data.packing != "concat" || data.long_documents == "split",
          "data.long_documents = " + json_quote(data.long_documents) +
              " applies to documents that stay whole: use data.packing = \"best_fit\" or \"balanced\"");
  require(data.mask == "documents" || data.positions == "document",
          "data.positions = " + json_quote(data.positions) +
              " applies to documents that are masked: leave it out" +
              (data.megatron.empty() ? "" : ", or use data.mask = \"documents\""));
  require(data.packing == "balanced" || data.window == 0,
          "data.window = " + std::to_string(data.window) +
              " belongs to data.packing = \"balanced\"; leave it out");
  constexpr std::int64_t kUsualBatches = 16;
  if (data.packing == "balanced" && data.window == 0) data.window = kUsualBatches * batch;
}

void check_data(const DataOptions& data) {
  require(data.text.empty() || data.megatron.empty(),
          "data.text = " + json_quote(data.text) + " and data.megatron are both given; keep one");
  require(data.text.empty() || data.megatron_weights.empty(),
          "data.megatron_weights belongs to data.megatron; leave it out");
  require(
      data.text.empty() || data.split.empty(),
      "data.split = " + json_quote(data.split) + " belongs to data.megatron; use data.validation_fraction");
  const double fraction = data.validation_fraction;
  require(data.split.empty() || fraction == DataOptions().validation_fraction,
          "data.validation_fraction = " + exact_number(fraction) +
              " and data.split = " + json_quote(data.split) + " are both given; keep one");
  if (!data.split.empty()) parse_split(data.split);
  check_shares(data.megatron_weights, data.megatron.size());
}

}  // namespace penstock::run
