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
          "data.megatron_weights has " + std::to_string(shares.size()) + " numbers, but data.megatron has " +
              std::to_string(prefixes) + " prefixes; give one for each");
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
              " is no split; give the shares of training, validation and test, as in \"969,30,1\"");
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
