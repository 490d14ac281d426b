// SPDX-License-Identifier: Apache-2.0
#include "train/data/parts.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "run/data_shares.h"

namespace penstock::train {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }

void require_whole(const Named& named, std::int64_t begin, std::span<const std::int64_t> ends,
                   Tokens longest) {
  for (std::size_t document = 0; document < ends.size(); ++document) {
    const std::int64_t length = ends[document] - (document == 0 ? begin : ends[document - 1]);
    if (length <= longest) continue;
    throw InputError(named.name + ": the document at token " + text(ends[document] - length) + " has " +
                     text(length) + " tokens, more than data.seq_len = " + text(longest) +
                     ", and data.long_documents = \"refuse\": use \"split\", or a greater data.seq_len");
  }
}

std::shared_ptr<const Packing> pack(const Named& named, std::int64_t begin, std::int64_t end,
                                    const Cut& cut) {
  if (!cut.packs || begin == end) return nullptr;
  const std::vector<std::int64_t> ends = named.source.document_ends(begin, end);
  if (!cut.splits) require_whole(named, begin, ends, cut.seq_len);
  return std::make_shared<Packing>(pieces_of(begin, ends, cut.seq_len, cut.full_targets), cut.seq_len);
}

// Returns a stretch of at least one sample; throws InputError for a shorter one.
Stretch checked(const Named& named, std::int64_t begin, std::int64_t end, const Cut& cut,
                const std::string& part, const std::string& remedy) {
  const Stretch stretch{&named.source, begin, end, pack(named, begin, end, cut)};
  if (cut.samples(stretch) > 0) return stretch;
  throw InputError(named.name + " has " + counted(end - begin, named.unit) + " " + part +
                   ", fewer than one sample of " + counted(cut.needed(), "token") + "; " + remedy);
}

}  // namespace

Ends ends_by_fraction(std::int64_t size, double fraction) {
  const auto held = static_cast<std::int64_t>(std::floor(fraction * static_cast<double>(size)));
  return {size - held, size, fraction > 0 ? "data.validation_fraction = " + exact_number(fraction) : ""};
}

Ends ends_by_split(const TokenSource& source, const std::string& split) {
  const std::vector<double> shares = run::parse_split(split);
  const std::int64_t training = source.end_of_documents(shares[0]);
  return {training, std::max(training, source.end_of_documents(shares[0] + shares[1])),
          shares[1] > 0 ? "data.split = " + json_quote(split) : "", /*whole_documents=*/true};
}

void take_parts(const Named& named, const Ends& ends, const Cut& cut, std::vector<Stretch>& training,
                std::vector<Stretch>& held_out) {
  // Greater shares may not help: those of few documents round to none.
  const std::string of_split = "data.split rounds to whole documents, and there " +
                               std::string(named.source.documents() == 1 ? "is " : "are ") +
                               counted(named.source.documents(), "document") +
                               ": use data.validation_fraction instead, or more documents";
  const auto remedy = [&](const char* other) { return ends.whole_documents ? of_split : other; };
  training.push_back(checked(named, 0, ends.training, cut, "to train on",
                             remedy("use a longer text or a smaller data.seq_len")));
  if (ends.held_out_by.empty()) return;
  held_out.push_back(checked(named, ends.training, ends.held_out, cut, "held out by " + ends.held_out_by,
                             remedy("use a greater fraction, or 0 for no evaluation")));
}

}  // namespace penstock::train
