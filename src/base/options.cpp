// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"
#include "base/typed_value.h"

namespace penstock {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

// Context of an error in one value of one option, for messages.
struct Place {
  const Option& option;
  std::string shown;  // the value as it was written
  std::string_view origin;

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(std::string(origin) + ": " + option.name() + " = " + shown + " " + what);
  }
};

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const std::string text = exact_number(value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string bound_text(double bound) {
  const bool whole = std::fabs(bound) < 1e15 && bound == std::floor(bound);
  return whole ? number(bound, 0) : exact_number(bound);
}

std::string scalar_text(const Scalar& scalar) {
  return std::visit(Overloaded{[](bool value) { return std::string(value ? "true" : "false"); },
                               [](std::int64_t value) { return std::to_string(value); },
                               [](double value) { return real_text(value); },
                               [](const std::string& value) { return json_quote(value); }},
                    scalar);
}

template <class List>
std::string list_text(const List& list) {
  std::vector<std::string> parts;
  for (const auto& element : list) parts.push_back(scalar_text(Scalar(element)));
  return "[" + join(parts, ", ") + "]";
}

std::string shown(const Value& value) {
  const std::string text =
      std::visit(Overloaded{[](const std::vector<Scalar>& list) { return list_text(list); },
                            [](const auto& scalar) { return scalar_text(Scalar(scalar)); }},
                 value);
  return printable(text, 100);
}

void check_number(const Place& place, double value) {
  const Constraint& allowed = place.option.constraint;
  const bool low = allowed.least_excluded ? value > allowed.least : value >= allowed.least;
  const bool high = allowed.greatest_excluded ? value < allowed.greatest : value <= allowed.greatest;
  if (!std::isfinite(value)) place.fail("is not a finite number");
  if (low && high) return;
  const Constraint free;
  const bool beyond = high ? allowed.least == free.least : allowed.greatest == free.greatest;
  place.fail(beyond ? "is beyond " + bound_text(free.greatest) : "must be " + to_text(allowed));
}

void check_word(const Place& place, const std::string& word) {
  constexpr std::string_view replaced = "\xEF\xBF\xBD";  // json_quote's substitute for invalid UTF-8
  const bool readable =
      word.find('\0') == word.npos &&
      (word.find(replaced) != word.npos || json_quote(word).find(replaced) == std::string::npos);
  if (!readable) place.fail("must be UTF-8 text without NUL");
  const auto& choices = place.option.constraint.choices;
  if (choices.empty() || std::ranges::find(choices, word) != choices.end()) return;
  place.fail("must be " + to_text(place.option.constraint) + did_you_mean(word, choices));
}

// Reads one scalar as T; nullopt if the scalar has another type.
template <class T>
std::optional<T> read(const Place& place, const Scalar& scalar) {
  if constexpr (std::is_same_v<T, double>) {
    const auto* whole = std::get_if<std::int64_t>(&scalar);
    const auto* real = std::get_if<double>(&scalar);
    if (whole == nullptr && real == nullptr) return std::nullopt;
    const double value = whole != nullptr ? static_cast<double>(*whole) : *real;
    check_number(place, value);
    return value;
  } else {
    const auto* value = std::get_if<T>(&scalar);
    if (value == nullptr) return std::nullopt;
    if constexpr (std::is_same_v<T, std::int64_t>) check_number(place, static_cast<double>(*value));
    if constexpr (std::is_same_v<T, std::string>) check_word(place, *value);
    return *value;
  }
}

[[noreturn]] void fail_type(const Place& place) {
  const std::string allowed = to_text(place.option.constraint);
  const std::string_view type = type_name(place.option);
  place.fail((type.starts_with('i') ? "is not an " : "is not a ") + std::string(type) +
             (allowed.empty() ? "" : "; it must be " + allowed));
}

std::optional<Scalar> scalar_of(const Value& value) {
  return std::visit(Overloaded{[](const std::vector<Scalar>&) { return std::optional<Scalar>(); },
                               [](const auto& scalar) { return std::optional<Scalar>(scalar); }},
                    value);
}

template <class T>
void store_scalar(const Place& place, const Value& value, T& target) {
  const std::optional<Scalar> scalar = scalar_of(value);
  const std::optional<T> read_value = scalar ? read<T>(place, *scalar) : std::nullopt;
  if (!read_value) fail_type(place);
  target = *read_value;
}

// A word instead of the number is stored as 0.
void store_integer(const Place& place, const Value& value, std::int64_t& target) {
  const auto* word = std::get_if<std::string>(&value);
  if (word == nullptr || place.option.constraint.choices.empty()) return store_scalar(place, value, target);
  check_word(place, *word);
  target = 0;
}

void store_number_or_word(const Place& place, const Value& value, NumberOrWord& target) {
  const auto* word = std::get_if<std::string>(&value);
  NumberOrWord stored;
  if (word != nullptr) {
    check_word(place, *word);
    stored.word = *word;
  } else {
    store_scalar(place, value, stored.number);
  }
  target = stored;
}

template <class T>
void store_list(const Place& place, const Value& value, std::vector<T>& target) {
  std::vector<Scalar> one;  // a single word is a list of one
  if (const auto* word = std::get_if<std::string>(&value); word && std::is_same_v<T, std::string>)
    one.push_back(*word);
  const auto* list = one.empty() ? std::get_if<std::vector<Scalar>>(&value) : &one;
  if (list == nullptr) fail_type(place);
  const std::size_t length = place.option.constraint.length;
  if (length != 0 && list->size() != length) place.fail("must have " + std::to_string(length) + " elements");
  std::vector<T> stored;
  for (const Scalar& scalar : *list) {
    const std::optional<T> element = read<T>(place, scalar);
    if (!element) fail_type(place);
    stored.push_back(*element);
  }
  target = std::move(stored);
}

void store_integers_or_word(const Place& place, const Value& value, IntegersOrWord& target) {
  IntegersOrWord stored;
  if (const auto* word = std::get_if<std::string>(&value)) {
    check_word(place, *word);
    stored.word = *word;
  } else {
    store_list(place, value, stored.list);
  }
  target = std::move(stored);
}

std::string integers_allowed(const Constraint& allowed) {
  const Constraint free;
  if (allowed.greatest < free.greatest) return to_text(allowed);
  using Limits = std::numeric_limits<std::int64_t>;
  const bool has_least = allowed.least > free.least;
  const auto least = has_least ? static_cast<std::int64_t>(allowed.least) : Limits::min();
  const std::string words = to_text(Constraint{.choices = allowed.choices});
  return "from " + std::to_string(least + (allowed.least_excluded ? 1 : 0)) + " to " +
         std::to_string(Limits::max()) + (words.empty() ? "" : " or " + words);
}

void refuse_beyond_64_bits(const Option& option, std::string_view text, std::string_view origin) {
  const std::optional<std::string_view> beyond = typed_beyond_64_bits(text);
  if (!beyond) return;
  const char* wrong = beyond->starts_with('-') ? "is too small" : "is too large";
  Place{option, printable(*beyond, 100), origin}.fail(std::string(wrong) + "; it must be " +
                                                      integers_allowed(option.constraint));
}

bool takes_integers(const Option& option) {
  return std::holds_alternative<std::int64_t*>(option.target) ||
         std::holds_alternative<Integers*>(option.target) ||
         std::holds_alternative<IntegersOrWord*>(option.target);
}

// The end of a message about an unknown key.
std::string known_instead(const OptionTable& table, std::string_view section, std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Option& option : table) {
    if (option.key == key) return "; did you mean " + option.name() + "?";
    if (section.empty() || option.section == section) keys.push_back(option.key);
  }
  const std::optional<std::string_view> like = nearest(key, keys);
  if (!like) return section.empty() ? std::string() : instead_of(key, keys, "");
  const auto same = [&](const Option& option) {
    return option.key == *like && (section.empty() || option.section == section);
  };
  return "; did you mean " + std::ranges::find_if(table, same)->name() + "?";
}

}  // namespace

Constraint positive() { return {.least = 0, .least_excluded = true}; }
Constraint not_negative() { return {.least = 0}; }
Constraint at_least(double least) { return {.least = least}; }
Constraint from_to(double least, double greatest) { return {.least = least, .greatest = greatest}; }
Constraint from_below(double least, double greatest) {
  return {.least = least, .greatest = greatest, .greatest_excluded = true};
}
Constraint one_of(std::vector<std::string_view> choices) { return {.choices = std::move(choices)}; }

std::string to_text(const Constraint& constraint) {
  const Constraint free;
  std::vector<std::string> parts;
  const bool has_least = constraint.least > free.least;
  if (has_least && constraint.greatest < free.greatest) {
    parts.push_back("from " + bound_text(constraint.least) + " to " +
                    (constraint.greatest_excluded ? "below " : "") + bound_text(constraint.greatest));
  } else if (has_least && constraint.least_excluded) {
    parts.push_back(constraint.least == 0 ? "positive" : "above " + bound_text(constraint.least));
  } else if (has_least) {
    parts.push_back(bound_text(constraint.least) + " or more");
  }
  for (const std::string_view choice : constraint.choices) parts.push_back("\"" + std::string(choice) + "\"");
  if (parts.size() < 2) return join(parts, "");
  const std::string last = parts.back();
  parts.pop_back();
  return join(parts, ", ") + " or " + last;
}

std::vector<std::string_view> sections(const OptionTable& table) {
  std::vector<std::string_view> found;
  for (const Option& option : table) {
    if (found.empty() || found.back() != option.section) found.push_back(option.section);
  }
  return found;
}

void check_section(const OptionTable& table, std::string_view section, std::string_view origin) {
  const auto known = sections(table);
  if (std::ranges::find(known, section) != known.end()) return;
  std::vector<std::string> written;
  for (const std::string_view name : known) written.push_back("[" + std::string(name) + "]");
  const std::vector<std::string_view> views(written.begin(), written.end());
  const std::string given = "[" + std::string(section) + "]";
  throw InputError(std::string(origin) + ": unknown section " + printable(given) +
                   instead_of(given, views, ""));
}

const Option& find_option(const OptionTable& table, std::string_view section, std::string_view key,
                          std::string_view origin) {
  if (!section.empty()) check_section(table, section, origin);
  for (const Option& option : table) {
    if (option.section == section && option.key == key) return option;
  }
  const std::string written = (section.empty() ? "" : std::string(section) + ".") + std::string(key);
  throw InputError(std::string(origin) + ": unknown key " + printable(written) +
                   known_instead(table, section, key));
}

void assign(const Option& option, const Value& value, std::string_view origin) {
  const Place place{option, shown(value), origin};
  std::visit(Overloaded{[&](NumberOrWord* target) { store_number_or_word(place, value, *target); },
                        [&](IntegersOrWord* target) { store_integers_or_word(place, value, *target); },
                        [&](std::int64_t* target) { store_integer(place, value, *target); },
                        [&]<class T>(std::vector<T>* target) { store_list(place, value, *target); },
                        [&]<class T>(T* target) { store_scalar(place, value, *target); }},
             option.target);
}

void assign_text(const Option& option, std::string_view text, std::string_view origin) {
  if (std::holds_alternative<std::string*>(option.target)) return assign(option, std::string(text), origin);
  if (std::holds_alternative<Words*>(option.target)) return assign(option, typed_words(text), origin);
  if (takes_integers(option)) refuse_beyond_64_bits(option, text, origin);
  if (std::holds_alternative<IntegersOrWord*>(option.target)) {
    const auto& words = option.constraint.choices;
    if (std::ranges::find(words, text) != words.end()) return assign(option, std::string(text), origin);
    return assign(option, typed_list(text), origin);
  }
  const bool list = std::visit(
      Overloaded{[]<class T>(const std::vector<T>*) { return true; }, [](const auto*) { return false; }},
      option.target);
  if (list) return assign(option, typed_list(text), origin);
  std::visit([&](const auto& scalar) { assign(option, scalar, origin); }, typed_scalar(text));
}

std::string value_text(const Option& option) {
  return std::visit(
      Overloaded{[](const NumberOrWord* target) {
                   return target->word.empty() ? real_text(target->number) : json_quote(target->word);
                 },
                 [](const IntegersOrWord* target) {
                   return target->word.empty() ? list_text(target->list) : json_quote(target->word);
                 },
                 [&](const std::int64_t* target) {
                   const auto& words = option.constraint.choices;
                   const bool word = *target == 0 && !words.empty();
                   return word ? json_quote(words.front()) : std::to_string(*target);
                 },
                 []<class T>(const std::vector<T>* target) { return list_text(*target); },
                 []<class T>(const T* target) { return scalar_text(Scalar(*target)); }},
      option.target);
}

bool is_given(const Option& option) {
  if (option.shown_default.empty()) return true;
  return std::visit(
      Overloaded{[](const NumberOrWord* target) { return !target->word.empty() || target->number != 0; },
                 [](const IntegersOrWord* target) { return !target->word.empty() || !target->list.empty(); },
                 [&](const std::int64_t* target) {  // where -1 is allowed, 0 is a value as any other
                   return *target != -1 && (*target != 0 || option.constraint.least == -1);
                 },
                 [](const double* target) { return *target != 0; }, [](const bool*) { return true; },
                 []<class List>(const List* target) { return !target->empty(); }},
      option.target);
}

std::string_view type_name(const Option& option) {
  constexpr std::string_view names[] = {
      "truth value (true or false)", "integer",          "number",          "text",         "number or word",
      "list of integers or word",    "list of integers", "list of numbers", "list of words"};
  return names[option.target.index()];
}

}  // namespace penstock
