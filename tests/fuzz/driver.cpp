// SPDX-License-Identifier: Apache-2.0
#include "fuzz/driver.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "fuzz/mutate.h"

// Present when a sanitizer is linked: called before the process dies.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace penstock::fuzz {
namespace {

constexpr std::size_t kMostBytes = 1 << 14;
constexpr std::size_t kMostAccepted = 4096;
constexpr double kSlowSeconds = 10;

struct Options {
  std::string corpus;
  double seconds = 10;
  unsigned long seed = 1;
  std::string save = "fuzz-failure.bin";
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      options.seconds = std::stod(argv[++i]);
    } else if (word == "--seed" && has_value) {
      options.seed = std::stoul(argv[++i]);
    } else if (word == "--save" && has_value) {
      options.save = argv[++i];
    } else {
      options.corpus = word;
    }
  }
  return options;
}

std::vector<std::string> read_corpus(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (inputs.empty()) throw std::runtime_error("no file in " + directory);
  return inputs;
}

// The input being tried, for the callback of a dying process.
std::string present_input;
std::string save_path;

void save_present_input() {
  std::ofstream(save_path, std::ios::binary) << present_input;
  std::cerr << "fuzz: the input (" << present_input.size() << " bytes) is in " << save_path << '\n';
}

class Fuzzer {
 public:
  Fuzzer(Target target, const Options& options, std::vector<std::string> corpus)
      : target_(target),
        seconds_(options.seconds),
        inputs_(std::move(corpus)),
        mutator_(options.seed, kMostBytes) {
    for (const std::string& input : inputs_) mutator_.learn_words(input);
  }

  // False on a defect.
  bool run() {
    const std::size_t seeds = inputs_.size();
    for (std::size_t i = 0; i < seeds; ++i) {
      if (!try_input(inputs_[i])) return false;
    }
    const Seconds begin = steady_seconds();
    while (steady_seconds() - begin < seconds_) {
      const std::string& base = inputs_[mutator_.below(inputs_.size())];
      const std::string& other = inputs_[mutator_.below(inputs_.size())];
      if (!try_input(mutator_.mutate(base, other))) return false;
    }
    std::cout << "fuzz: " << tried_ << " inputs, " << accepted_ << " accepted, no defect\n";
    return true;
  }

 private:
  bool try_input(std::string input) {
    present_input = std::move(input);
    ++tried_;
    const Seconds begin = steady_seconds();
    try {
      target_(present_input);
      accept();
    } catch (const InputError&) {  // refused
    } catch (const std::exception& error) {
      std::cerr << "fuzz: input " << tried_ << ": " << printable(error.what(), 2000) << '\n';
      return false;
    }
    if (steady_seconds() - begin <= kSlowSeconds) return true;
    std::cerr << "fuzz: input " << tried_ << " took " << steady_seconds() - begin << " s\n";
    return false;
  }

  // What is accepted is a better start than what is refused.
  void accept() {
    ++accepted_;
    if (inputs_.size() < kMostAccepted) {
      inputs_.push_back(present_input);
    } else {
      inputs_[mutator_.below(inputs_.size())] = present_input;
    }
  }

  Target target_;
  double seconds_;
  std::vector<std::string> inputs_;
  Mutator mutator_;
  long tried_ = 0;
  long accepted_ = 0;
};

}  // namespace

int fuzz_main(int argc, char** argv, Target target) {
  try {
    const Options options = parse_options(argc, argv);
    save_path = options.save;
    Fuzzer fuzzer(target, options, read_corpus(options.corpus));
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_present_input);
    if (fuzzer.run()) return 0;
    save_present_input();
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "fuzz: " << error.what() << '\n';
    return 2;
  }
}

}  // namespace penstock::fuzz
