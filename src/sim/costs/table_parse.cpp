// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "schedule/program_words.h"
#include "sim/costs/table.h"

namespace penstock::sim {
namespace {

using schedule::OpWord;

// The indices that a field selects: one, or all.
struct Range {
  int first = 0;
  int count = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view origin, const TableExtent& extent)
      : text_(text), origin_(origin), extent_(extent), table_(extent) {}

  CostTable parse() {
    for (std::string_view line : split(text_, '\n')) {
      ++line_;
      fields_ = words(line.substr(0, line.find('#')));
      if (!fields_.empty()) parse_entry();
    }
    if (bandwidth_line_ > 0 && !has_messages_) {
      line_ = bandwidth_line_;
      fail("a bandwidth without the size of a message; add \"message SLICE BYTES\", or use inf");
    }
    return std::move(table_);
  }

 private:
  // Messages take the time of their link.
  static bool has_seconds(schedule::OpKind kind) { return !is_send(kind) && !is_receive(kind); }

  static std::vector<std::string_view> words(std::string_view line) {
    constexpr std::string_view kBlanks = " \t\r";
    std::vector<std::string_view> found;
    for (std::size_t begin = line.find_first_not_of(kBlanks); begin != line.npos;) {
      const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
      found.push_back(line.substr(begin, end - begin));
      begin = line.find_first_not_of(kBlanks, end);
    }
    return found;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(std::string(origin_) + ": line " + std::to_string(line_) + ": " + what);
  }

  void parse_entry() {
    if (fields_[0] == "link") return parse_link();
    if (fields_[0] == "message") return parse_message();
    if (fields_[0] == "record") return parse_record();
    const auto word = std::ranges::find_if(schedule::kOpWords, [&](const OpWord& known) {
      return known.text == fields_[0] && has_seconds(known.kind);
    });
    if (word == schedule::kOpWords.end()) {
      std::string kinds;
      for (const OpWord& known : schedule::kOpWords)
        if (has_seconds(known.kind)) kinds += ", " + std::string(known.text);
      fail("\"" + printable(fields_[0]) + "\" is not an entry; expected link, message, record or one of" +
           kinds.substr(1));
    }
    need(4, "KIND STAGE SLICE SECONDS");
    if (word->key == schedule::KeyForm::None) must_be_all(1, "stages");
    if (word->key != schedule::KeyForm::Full) must_be_all(2, "slices");
    const Seconds seconds = amount(3, "time in seconds");
    each(extent_.stages, "stage", extent_.slices, "slice",
         [&](int stage, int slice) { table_.set_seconds(word->kind, stage, slice, seconds); });
  }

  // An op without this number, such as STEP without a stage, has one time: an entry for one of the numbers
  // would be ignored, or would hold for all.
  void must_be_all(std::size_t field, const char* names) const {
    if (fields_[field] == "*") return;
    fail("\"" + printable(fields_[field]) + "\": " + std::string(fields_[0]) + " has no " + names +
         "; expected *");
  }

  void parse_link() {
    need(5, "link FROM TO LATENCY BYTES_PER_SECOND");
    Link link{.latency = amount(3, "time in seconds")};
    if (fields_[4] != "inf") {
      link.bytes_per_second = amount(4, "bandwidth", "more than 0, or inf");
      if (link.bytes_per_second == 0) fail("a bandwidth of 0 moves nothing; expected more than 0, or inf");
      if (bandwidth_line_ == 0) bandwidth_line_ = line_;
    }
    each(extent_.devices, "device", extent_.devices, "device",
         [&](int from, int to) { table_.set_link(from, to, link); });
  }

  void parse_message() {
    need(3, "message SLICE BYTES");
    has_messages_ = true;
    const Range slices = range(1, extent_.slices, "slice");
    const Bytes size = bytes(2);
    for (int i = slices.first; i < slices.first + slices.count; ++i) table_.set_message(i, size);
  }

  void parse_record() {
    need(6, "record STAGE SLICE RECORD WEIGHT_RECORD KV_GRADIENT");
    const RecordBytes record{bytes(3), bytes(4), bytes(5)};
    each(extent_.stages, "stage", extent_.slices, "slice",
         [&](int stage, int slice) { table_.set_record(stage, slice, record); });
  }

  void need(std::size_t count, const char* form) const {
    if (fields_.size() != count) {
      fail(std::to_string(fields_.size()) + " fields found; expected \"" + form + "\"");
    }
  }

  // Calls set(i, k) for all indices that fields 1 and 2 select.
  template <class Set>
  void each(int first_extent, const char* first_name, int second_extent, const char* second_name,
            Set set) const {
    const Range first = range(1, first_extent, first_name);
    const Range second = range(2, second_extent, second_name);
    for (int i = first.first; i < first.first + first.count; ++i) {
      for (int k = second.first; k < second.first + second.count; ++k) set(i, k);
    }
  }

  Range range(std::size_t field, int extent, const char* name) const {
    if (fields_[field] == "*") return {0, extent};
    const std::optional<std::int64_t> value = parse_integer(fields_[field]);
    if (!value || *value < 0 || *value >= extent) {
      fail("\"" + printable(fields_[field]) + "\" is not a valid " + name + "; expected 0 to " +
           std::to_string(extent - 1) + ", or * for all");
    }
    return {static_cast<int>(*value), 1};
  }

  double amount(std::size_t field, const char* name,
                const char* expected = "a finite number, zero or more") const {
    const std::optional<double> value = parse_number(fields_[field]);
    if (!value || *value < 0) {
      fail("\"" + printable(fields_[field]) + "\" is not a valid " + name + "; expected " + expected);
    }
    return *value;
  }

  Bytes bytes(std::size_t field) const {
    constexpr Bytes kMost = 1'000'000'000'000'000;  // a sum of thousands fits in 64 bits
    const std::optional<std::int64_t> value = parse_integer(fields_[field]);
    if (!value || *value < 0 || *value > kMost)
      fail("\"" + printable(fields_[field]) + "\" is not a number of bytes; expected zero to 1e15");
    return *value;
  }

  std::string_view text_;
  std::string_view origin_;
  TableExtent extent_;
  CostTable table_;
  std::size_t line_ = 0;
  std::size_t bandwidth_line_ = 0;  // first line with a bandwidth; 0 if there is none
  bool has_messages_ = false;
  std::vector<std::string_view> fields_;
};

}  // namespace

CostTable parse_cost_table(std::string_view text, std::string_view origin, const TableExtent& extent) {
  return Parser(without_byte_order_mark(text), origin, extent).parse();
}

}  // namespace penstock::sim
