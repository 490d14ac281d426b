// SPDX-License-Identifier: Apache-2.0
// The table of options. A component keeps its options in a plain struct and describes each field once:
// section and key, target, one sentence, and constraint. Reader, command line, printed configuration, help
// and documentation all derive from the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace penstock {

// A number, or a word instead ("auto"); the word is empty if the number applies.
struct NumberOrWord {
  double number = 0.0;
  std::string word;
  bool is_auto() const { return word == "auto"; }
  friend bool operator==(const NumberOrWord&, const NumberOrWord&) = default;
};

using Integers = std::vector<std::int64_t>;

// A list of integers, or a word instead ("even"); the word is empty if the list applies.
struct IntegersOrWord {
  Integers list;
  std::string word;
  friend bool operator==(const IntegersOrWord&, const IntegersOrWord&) = default;
};

using Numbers = std::vector<double>;
using Words = std::vector<std::string>;

// Values from a file or a command line, independent of syntax.
using Scalar = std::variant<bool, std::int64_t, double, std::string>;
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<Scalar>>;

// A value from a file section whose keys no table lists.
struct GivenValue {
  std::string section;  // full path: "training.dataloader"
  std::string key;
  std::string where;           // "job.toml:12"
  std::string text;            // as a file would write it; nested lists appear as "[...]"
  std::optional<Value> value;  // empty for nested lists, dates and times

  std::string name() const { return section + (section.empty() ? "" : ".") + key; }
};

// The variable that receives a value; not owned.
using Target = std::variant<bool*, std::int64_t*, double*, std::string*, NumberOrWord*, IntegersOrWord*,
                            Integers*, Numbers*, Words*>;

// The allowed values; for lists, of each element. Numbers must be finite. An integer option with `choices`
// also accepts such a word, stored as 0.
struct Constraint {
  double least = -1e300;
  double greatest = 1e300;
  bool least_excluded = false;
  bool greatest_excluded = false;
  std::vector<std::string_view> choices;  // for words; empty: unrestricted
  std::size_t length = 0;                 // list length; 0: unrestricted
};
Constraint positive();
Constraint not_negative();
Constraint at_least(double least);
Constraint from_to(double least, double greatest);
Constraint from_below(double least, double greatest);  // [least, greatest)
Constraint one_of(std::vector<std::string_view> choices);
std::string to_text(
    const Constraint& constraint);  // "positive", "from 0 to 1", "none or full", "" if unrestricted

struct Option {
  std::string_view section;
  std::string_view key;
  Target target;
  std::string_view sentence;
  Constraint constraint;
  std::string_view shown_default;  // for defaults that depend on other options; empty: show the value itself

  std::string name() const { return std::string(section) + "." + std::string(key); }
};

// Options in print order; options of one section are adjacent.
using OptionTable = std::vector<Option>;

std::vector<std::string_view> sections(const OptionTable& table);

// Finds the option, or throws an InputError that begins with `origin` and names the nearest known section or
// key. An empty section means a key outside all sections.
const Option& find_option(const OptionTable& table, std::string_view section, std::string_view key,
                          std::string_view origin);
void check_section(const OptionTable& table, std::string_view section, std::string_view origin);

// Stores a value. If it has the wrong type, is NaN or infinite, or violates the constraint, throws an
// InputError that begins with `origin` (a file and line, a flag) and names option, value and valid values.
void assign(const Option& option, const Value& value, std::string_view origin);

// Parses a command-line value as the option's type: text needs no quotes, lists are 7,5 or [7, 5]. A single
// word is accepted as a list of words, here and in a file.
void assign_text(const Option& option, std::string_view text, std::string_view origin);

// The current value as TOML: 100, 3e-04, "slimpipe", [7, 5]. Round-trips.
std::string value_text(const Option& option);

// False while an option whose default depends on other options (shown_default) still holds the zero, -1,
// empty text or empty list that means "not given".
bool is_given(const Option& option);

std::string_view type_name(const Option& option);  // "integer", "list of numbers", ...

}  // namespace penstock
