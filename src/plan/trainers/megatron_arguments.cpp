// SPDX-License-Identifier: Apache-2.0
#include "plan/trainers/megatron_arguments.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace penstock::plan {
namespace {

enum class Kind : std::uint8_t { Flag, Integer, Number, Word, List };

const std::map<std::string_view, Kind>& known_options() {
  static const std::map<std::string_view, Kind> known = [] {
    std::map<std::string_view, Kind> kinds;
    const auto add = [&](Kind kind, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) kinds.emplace(name, kind);
    };
#define FLAGS(...) add(Kind::Flag, {__VA_ARGS__});
#define INTEGERS(...) add(Kind::Integer, {__VA_ARGS__});
#define NUMBERS(...) add(Kind::Number, {__VA_ARGS__});
#define WORDS(...) add(Kind::Word, {__VA_ARGS__});
#define LISTS(...) add(Kind::List, {__VA_ARGS__});
#include "plan/trainers/megatron_options.inc"
#undef FLAGS
#undef INTEGERS
#undef NUMBERS
#undef WORDS
#undef LISTS
    return kinds;
  }();
  return known;
}

// Divides a command line, or a file of one, into words as a shell does: with quotes, backslashes, continued
// lines and comments, but without expanding anything.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  std::vector<std::string> words() {
    for (; at_ < text_.size(); ++at_) take(text_[at_]);
    require(quote_ == 0, std::string("a quote, ") + quote_ + ", is not closed");
    end_word();
    return std::move(words_);
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  void take(char c) {
    if (c == '\\' && quote_ != '\'') return take_escaped();
    if (quote_ != 0 && c != quote_) {
      word_ += c;
    } else if (quote_ != 0) {
      quote_ = 0;
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      within_ = true;
    } else if (c == '#' && !within_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (is_blank(c)) {
      end_word();
    } else {
      add(c);
    }
  }

  // A backslash before a blank, between words, is taken for one at the end of a line.
  void take_escaped() {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\n';
    if (quote_ == '"' && next != '"' && next != '\\' && next != '\n') return add('\\');
    ++at_;
    if (next != '\n' && next != '\r' && (within_ || !is_blank(next))) add(next);
  }

  void add(char c) {
    word_ += c;
    within_ = true;
  }

  void end_word() {
    if (within_) words_.push_back(std::move(word_));
    word_.clear();
    within_ = false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::string word_;
  bool within_ = false;  // a word, even an empty one
  char quote_ = 0;       // the open one
};

struct Effects {
  std::map<std::string_view, std::string_view> refused, not_counted;  // with their effects
};

const Effects& effects() {
  static const Effects known = [] {
    Effects all;
    const auto refuse = [&](std::string_view why, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) all.refused.emplace(name, why);
    };
    const auto tell = [&](std::string_view why, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names) all.not_counted.emplace(name, why);
    };
#define REFUSED(why, ...) refuse(why, {__VA_ARGS__});
#define NOT_COUNTED(why, ...) tell(why, {__VA_ARGS__});
#include "plan/trainers/megatron_effects.inc"
#undef REFUSED
#undef NOT_COUNTED
    return all;
  }();
  return known;
}

[[noreturn]] void refuse_argument(const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& [option, kind] : known_options()) names.push_back(option);
  const std::string instead = name.starts_with("--")
                                  ? did_you_mean(name, names, "")
                                  : "; give the arguments themselves, not the name of a file";
  throw InputError("\"" + printable(name) + "\" is not an argument of Megatron-LM 307dcf37" + instead);
}

void check_value(const std::string& name, Kind kind, const std::optional<std::string>& value) {
  if (kind == Kind::Flag)
    return require(!value, name + " takes no value; got \"" + printable(value.value_or("")) + "\"");
  require(value.has_value(), name + " has no value");
  if (kind == Kind::Integer)
    require(parse_integer(*value).has_value(), name + " " + printable(*value) + ": expected a whole number");
  if (kind == Kind::Number)
    require(
        parse_number(*value).has_value() || parse_number(value->substr(value->starts_with('-'))).has_value(),
        name + " " + printable(*value) + ": expected a number");
}

}  // namespace

MegatronArguments::MegatronArguments(const std::string& text) {
  const std::vector<std::string> words = WordReader(text).words();
  for (std::size_t i = 0; i < words.size();) take(words, i);
}

std::string MegatronArguments::word(std::string_view name, const std::string& otherwise) const {
  const auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

double MegatronArguments::number(std::string_view name, double otherwise) const {
  return has(name) ? parse_number(values_.find(name)->second).value_or(otherwise) : otherwise;
}

std::int64_t MegatronArguments::integer(std::string_view name, std::int64_t otherwise) const {
  if (!has(name)) return otherwise;
  const std::int64_t value = *parse_integer(values_.find(name)->second);
  constexpr std::int64_t kMost =
      1 << 24;  // far above any size, and low enough that products of two do not overflow
  require(value > 0 && value <= kMost,
          std::string(name) + " " + std::to_string(value) + ": expected 1 to " + std::to_string(kMost));
  return value;
}

std::int64_t MegatronArguments::needed(std::string_view name) const {
  require(has(name), std::string(name) + " is missing; the step's time and memory depend on it");
  return integer(name, 0);
}

Words MegatronArguments::not_counted() const {
  Words told;
  for (const auto& [name, what] : effects().not_counted) {
    if (has(name)) told.push_back(std::string(name) + ": " + std::string(what));
  }
  return told;
}

void MegatronArguments::take(const std::vector<std::string>& words, std::size_t& i) {
  std::string name = words[i++];
  std::optional<std::string> value;
  if (const std::size_t equals = name.find('='); name.starts_with("--") && equals != std::string::npos) {
    value = name.substr(equals + 1);
    name.resize(equals);
  }
  const auto known = known_options().find(name);
  if (known == known_options().end()) refuse_argument(name);
  const bool is_list = known->second == Kind::List;
  while (known->second != Kind::Flag && (!value || is_list) && i < words.size() &&
         !words[i].starts_with("--")) {
    value = value ? *value + " " + words[i] : words[i];
    ++i;
  }
  check_value(name, known->second, value);
  if (const auto refused = effects().refused.find(name); refused != effects().refused.end())
    throw InputError(name + " is not predicted: " + std::string(refused->second));
  values_[std::string(known->first)] = value.value_or("");
}

}  // namespace penstock::plan
