// SPDX-License-Identifier: Apache-2.0
// Composes JSON piece by piece, safe inside a <script> element: it contains no "<", ">" or "&", so no text
// can end the element or open a comment.
#pragma once

#include <string>
#include <string_view>

namespace penstock::report {

// A string literal.
std::string json_text(std::string_view text);

// Pieces must be JSON already.
class JsonList {
 public:
  JsonList& add(std::string_view piece) {
    if (body_.size() > 1) body_ += ',';
    body_ += piece;
    return *this;
  }
  std::string text() const { return body_ + ']'; }

 private:
  std::string body_ = "[";
};

class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view piece) {
    if (body_.size() > 1) body_ += ',';
    body_ += json_text(key);
    body_ += ':';
    body_ += piece;
    return *this;
  }
  std::string text() const { return body_ + '}'; }

 private:
  std::string body_ = "{";
};

}  // namespace penstock::report
