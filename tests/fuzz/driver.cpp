// SPDX-License-Identifier: Apache-2.0
#include "fuzz/driver.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdint>
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
#include "fuzz/allocations.h"
#include "fuzz/coverage.h"
#include "fuzz/mutate.h"

// Present when a sanitizer is linked: called before the process dies.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

// Noting where every block was allocated takes a sixth of the time; ASAN_OPTIONS=malloc_context_size=30 with
// the input of a defect tells more.
extern "C" const char* __asan_default_options() { return "malloc_context_size=2"; }

// Otherwise it ends the process without a word to others.
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace penstock::fuzz {
namespace {

constexpr std::size_t kMostBytes = 1 << 14;
constexpr std::size_t kMostAccepted = 4096;
constexpr double kSlowSeconds = 10;
constexpr std::size_t kTimesInput = 4, kAllocated = 64 << 20;  // may be allocated for an input
constexpr std::size_t kMostBytesKept = 2048;  // of a file that joins the corpus or is changed further
constexpr std::size_t kMostFilesKept = 64;    // by one call

struct Options {
  std::string corpus;
  double seconds = 10;
  long inputs = 0;  // instead of the seconds; 0: not given
  unsigned long seed = 1;
  std::string save = "fuzz-failure.bin";
  bool grow = false;
};

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--seconds" && has_value) {
      options.seconds = std::stod(argv[++i]);
    } else if (word == "--inputs" && has_value) {
      options.inputs = std::stol(argv[++i]);
    } else if (word == "--seed" && has_value) {
      options.seed = std::stoul(argv[++i]);
    } else if (word == "--save" && has_value) {
      options.save = argv[++i];
    } else if (word == "--grow") {
      options.grow = true;
    } else {
      options.corpus = word;
    }
  }
  return options;
}

std::vector<std::filesystem::path> files_of(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> read_corpus(const std::string& directory) {
  std::vector<std::string> inputs;
  for (const auto& path : files_of(directory)) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (inputs.empty()) throw std::runtime_error("no file in " + directory);
  return inputs;
}

// A name by the content, with the ending of the other files.
std::string name_of(std::string_view input, const std::string& ending) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016lx", static_cast<unsigned long>(hash));
  return std::string(digits, 12) + ending;
}

void grow_corpus(const std::string& directory, const std::vector<std::string>& inputs) {
  const std::string ending = files_of(directory).front().extension().string();
  for (const std::string& input : inputs) {
    const auto path = std::filesystem::path(directory) / name_of(input, ending);
    std::ofstream(path, std::ios::binary) << input;
    if (!std::filesystem::exists(path)) throw std::runtime_error("cannot write " + path.string());
  }
  std::cout << "fuzz: " << inputs.size() << " inputs that reach more join " << directory << '\n';
}

// The input being tried, for the callback of a dying process.
std::string present_input;
std::string save_path;

void save_present_input() {
  std::ofstream(save_path, std::ios::binary) << present_input;
  std::cerr << "fuzz: the input (" << present_input.size() << " bytes) is in " << save_path << '\n';
}

void save_and_die(int signal) {
  save_present_input();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// The address sanitizer calls back, the one for undefined behaviour aborts; without them the signals of a
// dying process do, on a stack of their own, since the other may be full.
void save_input_at_death() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(save_present_input);
    ::signal(SIGABRT, save_and_die);
    return;
  }
  static std::array<char, 1 << 16> room;
  stack_t stack{};
  stack.ss_sp = room.data();
  stack.ss_size = room.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = save_and_die;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

class Fuzzer {
 public:
  Fuzzer(Target target, const Options& options, std::vector<std::string> corpus)
      : target_(target),
        seconds_(options.seconds),
        most_inputs_(options.inputs),
        grow_(options.grow),
        inputs_(std::move(corpus)),
        mutator_(options.seed, options.grow ? kMostBytesKept : kMostBytes) {
    for (const std::string& input : inputs_) mutator_.learn_words(input);
  }

  // False on a defect.
  bool run() {
    const Seconds begin = steady_seconds();
    const std::size_t seeds = inputs_.size();
    for (std::size_t i = 0; i < seeds; ++i) {
      if (!try_input(inputs_[i])) return false;
      if (grow_) new_inputs_.know(covered_features());
    }
    if (grow_ && covered_features().empty())
      throw std::runtime_error("this build does not say what an input reaches; take the preset coverage");
    while (most_inputs_ > 0 ? tried_ < most_inputs_ : steady_seconds() - begin < seconds_) {
      const std::string& base = inputs_[mutator_.below(inputs_.size())];
      const std::string& other = inputs_[mutator_.below(inputs_.size())];
      if (!try_input(mutator_.mutate(base, other))) return false;
      if (grow_ && new_inputs_.note(present_input, covered_features())) keep();
    }
    std::cout << "fuzz: " << tried_ << " inputs, " << accepted_ << " accepted, "
              << number(steady_seconds() - begin, 0) << " s, ";
    if (counts_allocations())
      std::cout << number(static_cast<double>(most_allocated_) / (1 << 20), 1) << " MiB at most, ";
    std::cout << "no defect\n";
    return true;
  }

  // For the corpus.
  std::vector<std::string> new_inputs() const { return new_inputs_.choose(kMostFilesKept); }

 private:
  bool try_input(std::string input) {
    present_input = std::move(input);
    ++tried_;
    const Seconds begin = processor_seconds_of_this_thread();  // other programs slow a clock on the wall
    if (grow_) begin_coverage();
    begin_allocations();
    try {
      target_(present_input);
      accept();
    } catch (const InputError&) {  // refused
    } catch (const std::exception& error) {
      std::cerr << "fuzz: input " << tried_ << ": " << printable(error.what(), 2000) << '\n';
      return false;
    }
    if (!allocated_little()) return false;
    const Seconds took = processor_seconds_of_this_thread() - begin;
    if (took <= kSlowSeconds) return true;
    std::cerr << "fuzz: input " << tried_ << " took " << took << " s\n";
    return false;
  }

  bool allocated_little() {
    const std::size_t most = most_allocated();
    most_allocated_ = std::max(most_allocated_, most);
    if (most <= kTimesInput * present_input.size() + kAllocated) return true;
    std::cerr << "fuzz: input " << tried_ << " of " << present_input.size() << " bytes made " << most
              << " bytes be allocated\n";
    return false;
  }

  // What is accepted is a better start than what is refused; when growing, what reaches more is. Long inputs
  // take long, and a change of them seldom meets what matters.
  void accept() {
    ++accepted_;
    if (!grow_ && present_input.size() <= kMostBytesKept) keep();
  }

  void keep() {
    if (inputs_.size() < kMostAccepted) {
      inputs_.push_back(present_input);
    } else {
      inputs_[mutator_.below(inputs_.size())] = present_input;
    }
  }

  Target target_;
  double seconds_;
  long most_inputs_;
  bool grow_;
  NewInputs new_inputs_;
  std::vector<std::string> inputs_;
  Mutator mutator_;
  long tried_ = 0;
  long accepted_ = 0;
  std::size_t most_allocated_ = 0;
};

}  // namespace

int fuzz_main(int argc, char** argv, Target target) {
  try {
    const Options options = parse_options(argc, argv);
    save_path = options.save;
    Fuzzer fuzzer(target, options, read_corpus(options.corpus));
    save_input_at_death();
    if (!fuzzer.run()) {
      save_present_input();
      return 1;
    }
    if (options.grow) grow_corpus(options.corpus, fuzzer.new_inputs());
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "fuzz: " << error.what() << '\n';
    return 2;
  }
}

}  // namespace penstock::fuzz
