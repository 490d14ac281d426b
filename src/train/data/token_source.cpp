// SPDX-License-Identifier: Apache-2.0
#include "train/data/token_source.h"

#include <cmath>

#include "files/megatron/data.h"

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
  std::int64_t end_of_documents(double share) const override { return share < 0.5 ? 0 : size(); }

 private:
  std::string_view text_;
};

class MegatronTokens : public TokenSource {
 public:
  MegatronTokens(const std::string& prefix, std::int64_t vocab) : data_(prefix), vocab_(vocab) {}

  std::int64_t size() const override { return data_.tokens(); }
  void read(std::int64_t first, std::span<std::int64_t> tokens) const override {
    data_.read(first, tokens, vocab_);
  }
  std::int64_t end_of_documents(double share) const override {
    const auto documents = static_cast<double>(data_.index().documents());
    return data_.index().document_begin(static_cast<std::int64_t>(std::nearbyint(share * documents)));
  }

 private:
  files::MegatronData data_;
  std::int64_t vocab_;
};

}  // namespace

std::unique_ptr<TokenSource> tokens_of_text(std::string_view text) {
  return std::make_unique<TextTokens>(text);
}

std::unique_ptr<TokenSource> tokens_of_megatron(const std::string& prefix, std::int64_t vocab) {
  return std::make_unique<MegatronTokens>(prefix, vocab);
}

}  // namespace penstock::train
