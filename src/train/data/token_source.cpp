// SPDX-License-Identifier: Apache-2.0
#include "train/data/token_source.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "files/megatron/data.h"
#include "files/megatron/loss_mask.h"

namespace penstock::train {
namespace {

class TextTokens : public TokenSource {
 public:
  explicit TextTokens(std::string_view text) : text_(text) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(text_.size()); }
  void read(std::int64_t first, std::span<std::int64_t> tokens) const override {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text_.data()) + first;
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = bytes[i];
  }
  void document_starts(std::int64_t, std::span<std::int64_t> starts) const override {
    std::ranges::fill(starts, 0);
  }
  void in_loss(std::int64_t, std::span<char> in_loss) const override { std::ranges::fill(in_loss, 1); }
  std::vector<std::int64_t> document_ends(std::int64_t, std::int64_t end) const override { return {end}; }
  std::int64_t documents() const override { return 1; }
  std::int64_t end_of_documents(double share) const override { return share < 0.5 ? 0 : size(); }

 private:
  std::string_view text_;
};

class MegatronTokens : public TokenSource {
 public:
  MegatronTokens(const std::string& prefix, std::int64_t vocab, bool masks_loss)
      : data_(prefix), vocab_(vocab) {
    if (masks_loss) mask_.emplace(prefix, data_.tokens());
  }

  std::int64_t size() const override { return data_.tokens(); }
  void read(std::int64_t first, std::span<std::int64_t> tokens) const override {
    data_.read(first, tokens, vocab_);
  }
  void document_starts(std::int64_t first, std::span<std::int64_t> starts) const override {
    const files::MegatronIndex& index = data_.index();
    std::int64_t document = index.document_of(first), begin = index.document_begin(document);
    std::int64_t next = index.document_begin(document + 1);
    for (std::int64_t& start : starts) {
      for (; first >= next; ++document) {  // skips empty documents
        begin = next;
        next = index.document_begin(document + 2);
      }
      start = begin;
      ++first;
    }
  }
  std::vector<std::int64_t> document_ends(std::int64_t begin, std::int64_t end) const override {
    const files::MegatronIndex& index = data_.index();
    std::vector<std::int64_t> ends;
    for (std::int64_t document = index.document_of(begin); begin < end; ++document) {
      const std::int64_t next = std::min(index.document_begin(document + 1), end);
      if (next > begin) ends.push_back(next);  // skips empty documents
      begin = next;
    }
    return ends;
  }
  void in_loss(std::int64_t first, std::span<char> in_loss) const override {
    if (mask_) return mask_->read(first, in_loss);
    std::ranges::fill(in_loss, 1);
  }
  std::int64_t documents() const override { return data_.index().documents(); }
  std::int64_t end_of_documents(double share) const override {
    const double before = share * static_cast<double>(documents());
    return data_.index().document_begin(static_cast<std::int64_t>(std::nearbyint(before)));
  }

 private:
  files::MegatronData data_;
  std::optional<files::LossMask> mask_;  // empty: all are targets
  std::int64_t vocab_;
};

class LengthsAlone : public TokenSource {
 public:
  explicit LengthsAlone(std::span<const Tokens> lengths) : begins_{0} {
    for (const Tokens length : lengths) begins_.push_back(begins_.back() + length);
  }

  std::int64_t size() const override { return begins_.back(); }
  void read(std::int64_t, std::span<std::int64_t> tokens) const override { std::ranges::fill(tokens, 0); }
  void document_starts(std::int64_t first, std::span<std::int64_t> starts) const override {
    auto next = std::ranges::upper_bound(begins_, first);
    for (std::int64_t& start : starts) {
      if (next != begins_.end() && first == *next) ++next;
      start = next[-1];
      ++first;
    }
  }
  std::vector<std::int64_t> document_ends(std::int64_t begin, std::int64_t end) const override {
    std::vector<std::int64_t> ends;
    for (auto next = std::ranges::upper_bound(begins_, begin); begin < end; ++next) {
      ends.push_back(std::min(*next, end));
      begin = *next;
    }
    return ends;
  }
  void in_loss(std::int64_t, std::span<char> in_loss) const override { std::ranges::fill(in_loss, 1); }
  std::int64_t documents() const override { return std::ssize(begins_) - 1; }
  std::int64_t end_of_documents(double share) const override {
    return begins_[static_cast<std::size_t>(std::nearbyint(share * static_cast<double>(documents())))];
  }

 private:
  std::vector<std::int64_t> begins_;  // [document], and the end of all
};

}  // namespace

std::unique_ptr<TokenSource> tokens_of_lengths(std::span<const Tokens> lengths) {
  return std::make_unique<LengthsAlone>(lengths);
}

std::unique_ptr<TokenSource> tokens_of_text(std::string_view text) {
  return std::make_unique<TextTokens>(text);
}

std::unique_ptr<TokenSource> tokens_of_megatron(const std::string& prefix, std::int64_t vocab,
                                                bool masks_loss) {
  return std::make_unique<MegatronTokens>(prefix, vocab, masks_loss);
}

}  // namespace penstock::train
