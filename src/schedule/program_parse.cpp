// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "schedule/program_text.h"
#include "schedule/program_words.h"
#include "schedule/text.h"
#include "schedule/units.h"

namespace penstock::schedule {
namespace {

constexpr std::int64_t kGreatest = std::numeric_limits<std::int32_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Splits "12SEND_F3.4" into "12", "SEND_F", "3.4".
struct TokenParts {
  std::string_view stage, word, rest;
};

TokenParts parts_of(std::string_view token) {
  const std::size_t word = std::ranges::find_if_not(token, is_digit) - token.begin();
  const std::size_t rest = std::find_if(token.begin() + word, token.end(), is_digit) - token.begin();
  return {token.substr(0, word), token.substr(word, rest - word), token.substr(rest)};
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view origin) : lines_(split(text, '\n')), origin_(origin) {
    if (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  }

  Program parse() {
    if (next_line() != kProgramMagic) fail("expected \"" + std::string(kProgramMagic) + "\"");
    program_.name = value_of("name");
    program_.stages = static_cast<int>(number_in(value_of("stages"), 1, kGreatest, "number of stages"));
    for (const std::string_view n : split(value_of("slices"), ',')) {
      program_.slices.push_back(static_cast<int>(number_in(n, 1, kMostSlices, "number of slices")));
      sliced_ |= program_.slices.back() != 1;
    }
    count_devices();
    while (at_ < lines_.size()) parse_line(next_line());
    return std::move(program_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(std::string(origin_) + ": line " + std::to_string(at_) + ": " + what);
  }

  std::string_view next_line() {
    ++at_;
    if (at_ > lines_.size()) fail("the text ends here; expected a program's head");
    std::string_view line = lines_[at_ - 1];
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  std::string_view value_of(std::string_view key) {
    const std::string_view line = next_line();
    if (!line.starts_with(std::string(key) + " ")) {
      fail("\"" + printable(line) + "\" found; expected \"" + std::string(key) + " ...\"");
    }
    return line.substr(key.size() + 1);
  }

  std::int64_t number_in(std::string_view text, std::int64_t least, std::int64_t greatest,
                         const char* what) const {
    const std::optional<std::int64_t> value = parse_integer(text);
    if (!value || *value < least || *value > greatest) {
      fail("\"" + printable(text) + "\" is not a valid " + what + "; expected " + std::to_string(least) +
           " to " + std::to_string(greatest));
    }
    return *value;
  }

  // Counts all devices first, since peers may be devices whose list comes later.
  void count_devices() {
    for (std::size_t i = at_; i < lines_.size(); ++i) device_count_ += lines_[i].starts_with("device ");
  }

  void parse_line(std::string_view line) {
    const std::int64_t next_device = program_.device_count();
    if (line.starts_with("device ")) {
      number_in(line.substr(7), next_device, next_device, "next device");
      program_.devices.emplace_back();
      return;
    }
    if (program_.devices.empty()) fail("\"" + printable(line) + "\" found; expected \"device 0\"");
    if (line.starts_with("exchange ")) return parse_exchange(split(line, ' '));
    if (!program_.exchanges.empty()) fail("\"" + printable(line) + "\" found; exchange comes after all ops");
    parse_op(split(line, ' '));
  }

  void parse_op(const std::vector<std::string_view>& words) {
    DeviceProgram& device = program_.devices.back();
    const auto index = static_cast<std::int64_t>(device.ops.size());
    number_in(words[0], index, index, "number of this op");
    if (words.size() < 2 || words.size() % 2 != 0)
      fail("expected \"" + std::to_string(index) + " OP [NAME VALUE]...\"");
    Op op = parse_key(words[1]);
    std::vector<std::uint32_t> waits;
    for (std::size_t i = 2; i < words.size(); i += 2) parse_field(op, waits, words[i], words[i + 1]);
    device.append(op, waits);
  }

  Op parse_key(std::string_view token) const {
    const TokenParts parts = parts_of(token);
    const auto word = std::ranges::find(kOpWords, parts.word, &OpWord::text);
    const bool has_stage = !parts.stage.empty();
    if (word == kOpWords.end() || has_stage != (word->key != KeyForm::None) ||
        parts.rest.empty() != (word->key != KeyForm::Full)) {
      fail("\"" + printable(token) +
           "\" is not an op; expected one like 0F1, 0SEND_F1, 1RECV_F1, 0REDUCE_GRAD or STEP");
    }
    Op op{.kind = word->kind};
    const bool of_unit = word->key == KeyForm::Stage;  // stages, and the sharded vocabulary
    if (has_stage) {
      const int last = of_unit ? vocabulary_unit(program_) : program_.stages - 1;
      op.key.stage = static_cast<std::int32_t>(number_in(parts.stage, 0, last, "stage"));
    }
    if (word->key == KeyForm::Full) parse_numbers(op, parts.rest);
    return op;
  }

  void parse_numbers(Op& op, std::string_view text) const {
    const std::size_t point = text.find('.');
    op.key.micro_batch = static_cast<std::int32_t>(
        number_in(text.substr(0, point), 0, program_.micro_batches() - 1, "micro-batch"));
    if (sliced_ != (point != std::string_view::npos)) {
      fail("\"" + printable(text) + "\" found; expected " +
           (sliced_ ? "MICROBATCH.SLICE" : "a micro-batch alone"));
    }
    if (!sliced_) return;
    op.key.slice = static_cast<std::int16_t>(
        number_in(text.substr(point + 1), 0, program_.slices[op.key.micro_batch] - 1, "slice"));
  }

  void parse_field(Op& op, std::vector<std::uint32_t>& waits, std::string_view name,
                   std::string_view value) const {
    if (name == "to" || name == "from" || name == "with") {
      op.peer = static_cast<std::int32_t>(number_in(value, 0, device_count_ - 1, "device"));
    } else if (name == "over") {
      op.group = group_in(op, value);
    } else if (name == "bytes") {
      op.bytes = number_in(value, 0, std::numeric_limits<std::int64_t>::max(), "number of bytes");
    } else if (name == "after") {
      const auto earlier = static_cast<std::int64_t>(program_.devices.back().ops.size()) - 1;
      for (const std::string_view wait : split(value, ',')) {
        waits.push_back(static_cast<std::uint32_t>(number_in(wait, 0, earlier, "earlier op")));
      }
    } else {
      fail("\"" + printable(name) +
           "\" is not a field of an op; expected to, from, with, over, bytes or after");
    }
  }

  mesh::Group group_in(const Op& op, std::string_view text) const {
    const std::optional<mesh::Group> group = mesh::parse_group(text);
    if (!group)
      fail("\"" + printable(text) + "\" is not a group of the mesh; expected one like replica or tensor");
    if (!is_collective(op.kind)) fail("only a collective is over a group");
    return *group;
  }

  void parse_exchange(const std::vector<std::string_view>& words) {
    static constexpr std::array<std::string_view, 6> kNames{"exchange", "on",     "by",
                                                            "during",   "halves", "bytes"};
    bool named = words.size() == 2 * kNames.size();
    for (std::size_t i = 0; named && i < kNames.size(); ++i) named = words[2 * i] == kNames[i];
    if (!named)
      fail(
          "expected \"exchange ACTION on DEVICE by DEVICE during ACTION halves FIRST+COUNT bytes "
          "REQUEST+REPLY\"");
    Exchange exchange{.of = parse_action(words[1]), .during = parse_action(words[7])};
    exchange.owner = static_cast<std::int32_t>(number_in(words[3], 0, device_count_ - 1, "device"));
    exchange.partner = static_cast<std::int32_t>(number_in(words[5], 0, device_count_ - 1, "device"));
    const std::int64_t halves = 2 * std::int64_t{std::numeric_limits<std::int16_t>::max()};
    const auto [first, count] = parse_pair(words[9], halves, "number of halves");
    exchange.first_half = static_cast<std::int32_t>(first);
    exchange.halves = static_cast<std::int32_t>(count);
    std::tie(exchange.request, exchange.reply) =
        parse_pair(words[11], std::numeric_limits<std::int64_t>::max(), "number of bytes");
    program_.exchanges.push_back(exchange);
  }

  Action parse_action(std::string_view token) const {
    const Op op = parse_key(token);
    if (op.kind == OpKind::Forward) return {op.key, Kind::Forward};
    if (op.kind == OpKind::Backward) return {op.key, Kind::Backward};
    if (op.kind == OpKind::BackwardInput) return {op.key, Kind::BackwardInput};
    fail("\"" + printable(token) + "\" has no attention; expected an F, B or I");
  }

  // "3+4"
  std::pair<std::int64_t, std::int64_t> parse_pair(std::string_view text, std::int64_t greatest,
                                                   const char* what) const {
    const std::size_t plus = text.find('+');
    if (plus == std::string_view::npos)
      fail("\"" + printable(text) + "\" found; expected two numbers, as in 0+2");
    return {number_in(text.substr(0, plus), 0, greatest, what),
            number_in(text.substr(plus + 1), 0, greatest, what)};
  }

  std::vector<std::string_view> lines_;
  std::string_view origin_;
  std::size_t at_ = 0;  // number of the current line, from 1
  std::int64_t device_count_ = 0;
  bool sliced_ = false;
  Program program_;
};

}  // namespace

Program parse_program(std::string_view text, std::string_view origin) {
  return Parser(without_byte_order_mark(text), origin).parse();
}

}  // namespace penstock::schedule
