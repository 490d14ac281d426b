// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/facts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "files/checksum.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kForm = "penstock checkpoint 2";
constexpr const char* kEarlierForm = "penstock checkpoint 1";  // with XXH3 of every tensor

constexpr const char* kTokens = "tokens";    // optional
constexpr const char* kContent = "content";  // optional, like the next three
constexpr const char* kMarks = "marks";
constexpr const char* kHeldOut = "held_out";
constexpr const char* kMetrics = "metrics";

struct IntegerMember {
  const char* key;
  std::int64_t CheckpointFacts::*value;
};
constexpr IntegerMember kIntegers[] = {{"step", &CheckpointFacts::step},
                                       {"samples_drawn", &CheckpointFacts::samples_drawn},
                                       {"samples_per_epoch", &CheckpointFacts::samples_per_epoch},
                                       {"updates", &CheckpointFacts::updates},
                                       {"skipped_steps", &CheckpointFacts::skipped_steps},
                                       {"skipped_in_a_row", &CheckpointFacts::skipped_in_a_row}};

struct NumberMember {
  const char* key;
  std::optional<double> CheckpointFacts::*value;
};
constexpr NumberMember kNumbers[] = {{"loss", &CheckpointFacts::loss},
                                     {"evaluation_loss", &CheckpointFacts::evaluation_loss}};

// The checksum line is the last and has a fixed length.
std::string seal_line(std::uint64_t sum) {
  return "  \"checksum\": \"" + files::checksum_text(sum) + "\"\n}\n";
}

std::string sealed(std::string text) {
  text.resize(text.size() - 2);  // the end of the object
  text += ",\n";
  return text + seal_line(files::checksum(text));
}

// Reads members of a JSON object; errors name the file.
class Reader {
 public:
  explicit Reader(std::string_view origin) : origin_(origin) {}

  [[noreturn]] void fail(const std::string& what) const { throw InputError(origin_ + ": " + what); }

  const OrderedJson& member(const OrderedJson& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail("\"" + std::string(key) + "\" is missing");
    return *found;
  }

  const OrderedJson& object(const OrderedJson& parent, const char* key) const {
    const OrderedJson& value = member(parent, key);
    if (!value.is_object()) fail("\"" + std::string(key) + "\" is not an object");
    return value;
  }

  std::int64_t count(const OrderedJson& parent, const char* key) const {
    const OrderedJson& value = member(parent, key);
    if (!value.is_number_unsigned() || value > std::uint64_t{1} << 62) {
      fail("\"" + std::string(key) + "\" is " + printable(value.dump()) +
           "; it must be an integer that is not negative");
    }
    return value.get<std::int64_t>();
  }

  std::optional<double> number(const OrderedJson& parent, const char* key) const {
    const OrderedJson& value = member(parent, key);
    if (value.is_null()) return std::nullopt;
    if (!value.is_number()) fail("\"" + std::string(key) + "\" is not a number");
    return value.get<double>();
  }

  std::string word(const OrderedJson& value, const std::string& key) const {
    if (!value.is_string()) fail("\"" + printable(key) + "\" is not text");
    return value.get<std::string>();
  }

  std::uint64_t sum(const OrderedJson& value, const std::string& key) const {
    const auto sum = files::parse_checksum(word(value, key));
    if (!sum) fail("\"" + printable(key) + "\" is not a checksum of 16 hexadecimal digits");
    return *sum;
  }

 private:
  std::string origin_;
};

// Parses the document; fails if its checksum is wrong.
OrderedJson unsealed(std::string_view text, const Reader& read) {
  const std::size_t length = seal_line(0).size();
  if (text.size() < length) read.fail("is not a whole checkpoint file: it has no checksum at its end");
  const std::string_view body = text.substr(0, text.size() - length);
  const std::string wanted = seal_line(files::checksum(body));
  if (text.substr(body.size()) != wanted) {
    read.fail("is damaged: its checksum is " + files::checksum_text(files::checksum(body)) +
              ", another one was recorded");
  }
  OrderedJson document = files::parse_or_discard<OrderedJson>(text);
  if (!document.is_object()) read.fail("is not a JSON object");
  return document;
}

void require_form(const OrderedJson& document, const Reader& read) {
  const std::string form = read.word(read.member(document, "form"), "form");
  if (form == kEarlierForm) {
    read.fail("is of an earlier version (\"" + form + "\"), whose tensors have checksums of another kind; " +
              "this program reads \"" + kForm + "\"");
  }
  if (form != kForm) {
    read.fail("has the form \"" + printable(form) + "\"; this program reads \"" + kForm + "\"");
  }
  const std::string sums = read.word(read.member(document, "tensor_checksums"), "tensor_checksums");
  if (sums != files::kWordSum) {
    read.fail("has tensor checksums of the kind \"" + printable(sums) + "\"; this program reads \"" +
              std::string(files::kWordSum) + "\"");
  }
}

FileSums read_sums(const std::string& name, const OrderedJson& entry, const Reader& read) {
  FileSums sums{.file = name};
  if (!entry.is_object()) read.fail("\"" + printable(name) + "\" is not an object");
  sums.head = read.sum(read.member(entry, "header"), "header");
  for (const auto& [tensor, sum] : read.object(entry, "tensors").items()) {
    sums.tensors.emplace_back(tensor, read.sum(sum, tensor));
  }
  return sums;
}

}  // namespace

std::string to_json(const CheckpointFacts& facts) {
  OrderedJson document{{"form", kForm}, {"tensor_checksums", files::kWordSum}};
  for (const auto& [key, value] : kIntegers) document[key] = facts.*value;
  for (const auto& [key, value] : kNumbers) {
    const bool finite = facts.*value && std::isfinite(*(facts.*value));
    document[key] = finite ? OrderedJson(*(facts.*value)) : OrderedJson(nullptr);
  }
  if (facts.tokens) document[kTokens] = *facts.tokens;
  if (facts.content) document[kContent] = files::checksum_text(*facts.content);
  if (facts.marks) document[kMarks] = files::checksum_text(*facts.marks);
  if (facts.held_out) document[kHeldOut] = files::checksum_text(*facts.held_out);
  if (!facts.metrics.empty()) document[kMetrics] = facts.metrics;
  document["settings"] = OrderedJson::object();
  for (const auto& [name, value] : facts.settings) document["settings"][name] = value;
  document["index"] = files::checksum_text(facts.index);
  document["files"] = OrderedJson::object();
  for (const FileSums& sums : facts.files) {
    OrderedJson& entry = document["files"][sums.file];
    entry = {{"header", files::checksum_text(sums.head)}, {"tensors", OrderedJson::object()}};
    for (const auto& [tensor, sum] : sums.tensors) entry["tensors"][tensor] = files::checksum_text(sum);
  }
  return sealed(document.dump(2, ' ', false, OrderedJson::error_handler_t::replace));
}

CheckpointFacts parse_checkpoint_facts(std::string_view text, std::string_view origin) {
  const Reader read(origin);
  const OrderedJson document = unsealed(text, read);
  require_form(document, read);
  CheckpointFacts facts;
  for (const auto& [key, value] : kIntegers) facts.*value = read.count(document, key);
  for (const auto& [key, value] : kNumbers) facts.*value = read.number(document, key);
  if (document.contains(kTokens)) facts.tokens = read.count(document, kTokens);
  if (document.contains(kContent)) facts.content = read.sum(document[kContent], kContent);
  if (document.contains(kMarks)) facts.marks = read.sum(document[kMarks], kMarks);
  if (document.contains(kHeldOut)) facts.held_out = read.sum(document[kHeldOut], kHeldOut);
  if (document.contains(kMetrics)) facts.metrics = read.word(document[kMetrics], kMetrics);
  for (const auto& [name, value] : read.object(document, "settings").items()) {
    facts.settings.emplace_back(name, read.word(value, name));
  }
  facts.index = read.sum(read.member(document, "index"), "index");
  for (const auto& [name, entry] : read.object(document, "files").items()) {
    facts.files.push_back(read_sums(name, entry, read));
  }
  return facts;
}

}  // namespace penstock::train
