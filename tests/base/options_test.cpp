// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "failure.h"

namespace penstock {
namespace {

struct Fields {
  std::int64_t steps = 100;
  double lr = 3e-4;
  bool shuffle = true;
  std::string dir = "runs";
  std::string decay = "matrices";
  NumberOrWord offload;
  Integers layers;
  Numbers betas{0.9, 0.95};
  Words keep;
};

OptionTable describe(Fields& fields) {
  Constraint beta = from_below(0, 1);
  beta.length = 2;
  Constraint fraction = from_to(0, 1);
  fraction.choices = {"auto"};
  return {{"train", "steps", &fields.steps, "Steps.", positive()},
          {"train", "lr", &fields.lr, "Rate.", positive()},
          {"train", "shuffle", &fields.shuffle, "Order."},
          {"train", "decay", &fields.decay, "What decays.", one_of({"matrices", "all"})},
          {"train", "betas", &fields.betas, "Rates.", beta},
          {"memory", "offload", &fields.offload, "Part.", fraction},
          {"memory", "keep", &fields.keep, "Tensors."},
          {"memory", "layers", &fields.layers, "Layers.", positive()},
          {"output", "dir", &fields.dir, "Where."}};
}

// The error of assigning a value to section.key.
std::string refusal(std::string_view section, std::string_view key, const Value& value) {
  Fields fields;
  const OptionTable table = describe(fields);
  return failure<InputError>([&] { assign(find_option(table, section, key, "f:1"), value, "f:1"); });
}

TEST(Options, NameTheOptionTheValueAndWhatWouldBeRight) {
  EXPECT_EQ(refusal("train", "steps", std::int64_t{-3}), "f:1: train.steps = -3 must be positive");
  EXPECT_EQ(refusal("train", "steps", std::int64_t{0}), "f:1: train.steps = 0 must be positive");
  EXPECT_EQ(refusal("train", "steps", 2.5), "f:1: train.steps = 2.5 is not an integer; it must be positive");
  EXPECT_EQ(refusal("train", "steps", std::string("many")),
            "f:1: train.steps = \"many\" is not an integer; it must be positive");
  EXPECT_EQ(refusal("train", "shuffle", std::int64_t{1}),
            "f:1: train.shuffle = 1 is not a truth value (true or false)");
  EXPECT_EQ(refusal("train", "betas", std::vector<Scalar>{0.9, 1.0}),
            "f:1: train.betas = [0.9, 1.0] must be from 0 to below 1");
  EXPECT_EQ(refusal("train", "betas", std::vector<Scalar>{0.9}),
            "f:1: train.betas = [0.9] must have 2 elements");
  EXPECT_EQ(refusal("memory", "layers", std::int64_t{7}),
            "f:1: memory.layers = 7 is not a list of integers; it must be positive");
}

TEST(Options, RefuseNumbersThatAreNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal("train", "lr", std::numeric_limits<double>::quiet_NaN()),
            "f:1: train.lr = nan is not a finite number");
  EXPECT_EQ(refusal("train", "lr", infinity), "f:1: train.lr = inf is not a finite number");
  EXPECT_EQ(refusal("train", "betas", std::vector<Scalar>{-infinity, 0.5}),
            "f:1: train.betas = [-inf, 0.5] is not a finite number");
}

TEST(Options, RefuseNumbersBeyondTheGreatest) {
  EXPECT_EQ(refusal("train", "lr", 1e305), "f:1: train.lr = 1e+305 is beyond 1e+300");
}

TEST(Options, NameTheNearestWord) {
  EXPECT_EQ(refusal("train", "decay", std::string("al")),
            "f:1: train.decay = \"al\" must be \"matrices\" or \"all\"; did you mean \"all\"?");
  EXPECT_EQ(refusal("memory", "offload", std::string("atuo")),
            "f:1: memory.offload = \"atuo\" must be from 0 to 1 or \"auto\"; did you mean \"auto\"?");
  EXPECT_EQ(refusal("memory", "offload", 1.5), "f:1: memory.offload = 1.5 must be from 0 to 1 or \"auto\"");
}

TEST(Options, NameTheNearestKeyAndSection) {
  Fields fields;
  const OptionTable table = describe(fields);
  const auto refused = [&](std::string_view section, std::string_view key) {
    return failure<InputError>([&] { find_option(table, section, key, "f"); });
  };
  EXPECT_EQ(refused("train", "stepz"), "f: unknown key train.stepz; did you mean train.steps?");
  EXPECT_EQ(refused("train", "dir"), "f: unknown key train.dir; did you mean output.dir?");
  EXPECT_EQ(refused("", "lr"), "f: unknown key lr; did you mean train.lr?");
  EXPECT_EQ(refused("trian", "lr"), "f: unknown section [trian]; did you mean [train]?");
  EXPECT_EQ(refused("engine", "lr"),
            "f: unknown section [engine]; expected one of [train], [memory], [output]");
  EXPECT_EQ(refused("output", "compression"), "f: unknown key output.compression; expected one of dir");
  EXPECT_EQ(refused("", "compression"), "f: unknown key compression");
}

TEST(Options, RefuseTextThatIsNoUtf8OrHoldsNul) {
  EXPECT_NE(refusal("output", "dir", std::string("caf\xE9")), "");
  EXPECT_NE(refusal("output", "dir", std::string("a\0b", 3)), "");
  EXPECT_EQ(refusal("output", "dir", std::string("caf\xC3\xA9 \xEF\xBF\xBD")), "");
}

TEST(Options, ReadFromACommandLineWhatTheyPrint) {
  Fields fields;
  fields = {.steps = 7,
            .lr = 1e-22,
            .shuffle = false,
            .dir = "a b\t\"c\"",
            .decay = "all",
            .offload = {0, "auto"},
            .layers = {7, 5},
            .betas = {0, 0.1},
            .keep = {"q", "k"}};
  Fields read;
  const OptionTable from = describe(fields), to = describe(read);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool text = from[i].key == "dir" || from[i].key == "decay";
    const std::string typed = from[i].key == "dir"     ? fields.dir
                              : from[i].key == "decay" ? fields.decay
                                                       : value_text(from[i]);
    assign_text(to[i], typed, "command line");
    EXPECT_EQ(value_text(to[i]), value_text(from[i])) << from[i].name() << text;
  }
}

TEST(Options, TakeListsOnTheCommandLineWithoutBrackets) {
  Fields fields;
  const OptionTable table = describe(fields);
  assign_text(find_option(table, "memory", "layers", ""), "7,5", "");
  assign_text(find_option(table, "memory", "keep", ""), "[q, \"k\"]", "");
  EXPECT_EQ(fields.layers, (Integers{7, 5}));
  EXPECT_EQ(fields.keep, (Words{"q", "k"}));
  assign_text(find_option(table, "memory", "layers", ""), "[]", "");
  EXPECT_EQ(fields.layers, Integers{});
}

TEST(Options, KeepTheOldValueWhenTheNewOneIsRefused) {
  Fields fields;
  const OptionTable table = describe(fields);
  EXPECT_THROW(assign_text(find_option(table, "train", "betas", ""), "0.5,2", ""), InputError);
  EXPECT_THROW(assign_text(find_option(table, "memory", "offload", ""), "-1", ""), InputError);
  EXPECT_EQ(fields.betas, (Numbers{0.9, 0.95}));
  EXPECT_EQ(fields.offload, NumberOrWord{});
}

TEST(Options, DescribeWhatIsAllowed) {
  EXPECT_EQ(to_text(positive()), "positive");
  EXPECT_EQ(to_text(not_negative()), "0 or more");
  EXPECT_EQ(to_text(from_to(1, 8)), "from 1 to 8");
  EXPECT_EQ(to_text(one_of({"a", "b", "c"})), "\"a\", \"b\" or \"c\"");
  EXPECT_EQ(to_text(Constraint{}), "");
}

TEST(Options, TakeAWordAloneAsAListOfOne) {
  Words words;
  const Option option{"data", "files", &words, "Names.", {}};
  assign(option, std::string("one"), "file");
  EXPECT_EQ(words, Words{"one"});
  assign_text(option, "007", "command line");
  EXPECT_EQ(words, Words{"007"}) << "a text, though it looks like a number";
  assign_text(option, "[a, \"b c\" ,true]", "command line");
  EXPECT_EQ(words, (Words{"a", "b c", "true"}));
  assign_text(option, "", "command line");
  EXPECT_EQ(words, Words{});
}

}  // namespace
}  // namespace penstock
