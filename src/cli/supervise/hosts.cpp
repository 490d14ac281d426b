// SPDX-License-Identifier: Apache-2.0
#include "cli/supervise/hosts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <span>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "cli/supervise/child.h"
#include "cli/supervise/command_words.h"
#include "cli/tell.h"
#include "files/mapped_file.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kLongestHostFile = std::size_t{1} << 24;
constexpr int kMostSlots = 1 << 20;
constexpr double kPatience = 60;
constexpr const char* kAllSlots = "*";  // as many as the host has

// Options of mpirun, without their dashes.
constexpr std::array<std::string_view, 2> kHost{"host", "H"};
constexpr std::array<std::string_view, 2> kHostFile{"hostfile", "machinefile"};
constexpr std::array<std::string_view, 3> kRanks{"np", "n", "c"};
constexpr std::array<std::string_view, 4> kRanksOfEach{"N", "npernode", "npersocket", "ppr"};
constexpr std::array<std::string_view, 1> kMapBy{"map-by"};
constexpr std::array<std::string_view, 1> kOversubscribe{"oversubscribe"};
constexpr std::array<std::string_view, 2> kParameter{"mca", "gmca"};

// Parameters of Open MPI.
constexpr std::string_view kMapping = "rmaps_base_mapping_policy";  // set by --map-by
constexpr std::string_view kMoreThanSlots = "rmaps_base_oversubscribe";

// Options that affect whether a host can be reached.
constexpr std::array<std::string_view, 10> kReach{
    "mca",  "gmca",   "prtemca",  "pmixmca",      "am",
    "tune", "prefix", "noprefix", "launch-agent", "allow-run-as-root"};

int slots_in(const std::string& text, const std::string& origin) {
  if (text == kAllSlots) return 0;  // not given
  const auto slots = parse_integer(text);
  if (!slots || *slots < 1 || *slots > kMostSlots)
    throw InputError(origin + ": \"" + printable(text, 50) + "\" is not a number of slots");
  return static_cast<int>(*slots);
}

void add(std::vector<NamedHost>& hosts, const std::string& name, int slots) {
  const auto found = std::ranges::find(hosts, name, &NamedHost::name);
  if (found == hosts.end()) {
    hosts.push_back({name, slots});
  } else if (slots > 0) {
    found->slots += slots;
  }
}

// "a:2,b,b": a name without a number counts as one slot.
void add_list(std::vector<NamedHost>& hosts, const std::string& list) {
  for (const std::string_view entry : split(list, ',')) {
    const std::size_t colon = entry.find(':');
    const std::string name(entry.substr(0, colon));
    const bool told = colon != std::string_view::npos;
    add(hosts, name, told ? slots_in(std::string(entry.substr(colon + 1)), "--host " + name) : 1);
  }
}

// Splits a line into words, with "=" as a separate word; # starts a comment.
std::vector<std::string> words_of(std::string_view line) {
  std::string apart;
  for (const char letter : line.substr(0, line.find('#')))
    apart += letter == '=' ? std::string(" = ") : std::string(1, letter);
  std::istringstream stream(apart);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool tells_slots(const std::vector<NamedHost>& hosts) {
  return std::ranges::all_of(hosts, [](const NamedHost& host) { return host.slots > 0; });
}

std::int64_t slots_of(const std::vector<NamedHost>& hosts) {
  std::int64_t slots = 0;
  for (const NamedHost& host : hosts) slots += host.slots;
  return slots;
}

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-probe-XXXXXX").string();
    if (!mkdtemp(name.data())) throw RunError(name + " cannot be made: " + std::strerror(errno));
    path_ = name;
  }
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string directory(std::size_t number) const {
    const std::filesystem::path path = path_ / std::to_string(number);
    std::filesystem::create_directory(path);
    return path.string();
  }

 private:
  std::filesystem::path path_;
};

// -np and its number; word 0: not given.
struct RanksAsked {
  std::size_t word = 0;
  std::int64_t count = 0;
};
RanksAsked ranks_asked(const MpirunCommand& command) {
  const std::size_t end = program_of_mpirun(command);
  for (std::size_t i = 1; i + 1 < end; ++i) {
    const auto count = is_option(command[i], kRanks) ? parse_integer(command[i + 1]) : std::nullopt;
    if (count) return {i, *count};
  }
  return {};
}

// "node:PE=2,OVERSUBSCRIBE": Open MPI accepts any case and word prefixes.
bool is_oversubscribing(std::string policy) {
  for (char& letter : policy)
    letter = letter == ':' ? ',' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return std::ranges::any_of(split(policy, ','), [](std::string_view word) {
    return !word.empty() && std::string_view("oversubscribe").starts_with(word);
  });
}

bool lets_oversubscribe(std::string_view parameter, const std::string& value) {
  if (parameter == kMapping) return is_oversubscribing(value);
  return parameter == kMoreThanSlots && value != "0" && value != "false";
}

// Whether the command or the environment allows more ranks than slots.
bool may_oversubscribe(const MpirunCommand& command) {
  for (const std::string_view parameter : {kMapping, kMoreThanSlots}) {
    const char* value = std::getenv(("OMPI_MCA_" + std::string(parameter)).c_str());
    if (value && lets_oversubscribe(parameter, value)) return true;
  }
  const std::size_t end = program_of_mpirun(command);
  for (std::size_t i = 1; i < end; ++i) {
    const std::span<const std::string> values = std::span(command).subspan(i + 1);
    if (is_option(command[i], kOversubscribe)) return true;
    if (is_option(command[i], kMapBy) && !values.empty() && is_oversubscribing(values[0])) return true;
    if (is_option(command[i], kParameter) && values.size() > 1 && lets_oversubscribe(values[0], values[1]))
      return true;
  }
  return false;
}

// Whether the number of ranks follows from a number for each host or socket.
bool has_ranks_of_each(const MpirunCommand& command) {
  const std::size_t end = program_of_mpirun(command);
  for (std::size_t i = 1; i < end; ++i) {
    if (is_option(command[i], kRanksOfEach)) return true;
    if (is_option(command[i], kMapBy) && i + 1 < end && command[i + 1].starts_with("ppr")) return true;
  }
  return false;
}

std::vector<std::string> values_of(const NamedHosts& named, const MpirunCommand& command) {
  std::vector<std::string> values;
  for (const std::size_t option : named.options) values.push_back(command[option + 1]);
  return values;
}

std::string list_of(const std::vector<NamedHost>& hosts) {
  std::vector<std::string> entries;
  for (const NamedHost& host : hosts)
    entries.push_back(host.name + ":" + (host.slots > 0 ? std::to_string(host.slots) : kAllSlots));
  return join(entries, ",");
}

}  // namespace

std::vector<NamedHost> parse_host_file(std::string_view text, const std::string& origin) {
  std::vector<NamedHost> hosts;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    int slots = 0;
    const auto key = std::ranges::find(words, "slots");
    if (key != words.end() && words.end() - key > 1 && key[1] == "=")
      slots = slots_in(words.end() - key > 2 ? key[2] : std::string(), origin + ", host " + words[0]);
    add(hosts, words[0], slots);
  }
  return hosts;
}

std::optional<NamedHosts> named_hosts(const MpirunCommand& command) {
  if (!starts_mpirun(command)) return {};
  const std::size_t end = program_of_mpirun(command);
  NamedHosts in_lists, in_files;
  for (std::size_t i = 1; i + 1 < end; ++i) {
    if (is_option(command[i], kHost)) {
      in_lists.options.push_back(i);
      add_list(in_lists.hosts, command[i + 1]);
    } else if (is_option(command[i], kHostFile)) {
      in_files.options.push_back(i);
      for (const NamedHost& host :
           parse_host_file(files::read_text(command[i + 1], kLongestHostFile), command[i + 1]))
        add(in_files.hosts, host.name, host.slots);
    }
  }
  if (!in_lists.options.empty()) return in_lists;  // mpirun uses only the hosts of a file that are in a list
  if (!in_files.options.empty()) return in_files;
  return {};
}

void require_slots(const MpirunCommand& command, const NamedHosts& named) {
  const auto ranks = ranks_asked(command);
  const bool more = ranks.count > slots_of(named.hosts) && tells_slots(named.hosts);
  if (!more || may_oversubscribe(command)) return;
  throw InputError(command[ranks.word] + " " + std::to_string(ranks.count) +
                   " asks for more ranks than the " + std::to_string(slots_of(named.hosts)) + " slots of " +
                   command[named.options.front()] + " " + printable(join(values_of(named, command), ",")));
}

MpirunCommand probe(const MpirunCommand& command, const NamedHost& host, const std::string& scratch) {
  MpirunCommand words{command.front(), "--mca", "orte_local_tmpdir_base", scratch};
  const std::size_t end = program_of_mpirun(command);
  for (std::size_t i = 1; i < end; ++i) {
    const std::span<const std::string> rest = std::span(command).subspan(i);
    if (!is_option(rest[0], kReach)) continue;
    const std::size_t values = values_after(rest[0]);
    if (values >= rest.size()) continue;
    words.insert(words.end(), rest.begin(), rest.begin() + 1 + static_cast<std::ptrdiff_t>(values));
    i += values;
  }
  words.insert(words.end(), {"--host", host.name + ":1", "-np", "1", "true"});
  return words;
}

MpirunCommand on_hosts(const MpirunCommand& command, const NamedHosts& all,
                       const std::vector<NamedHost>& left) {
  MpirunCommand words = command;
  words[all.options.front()] = "--host";
  words[all.options.front() + 1] = list_of(left);
  if (const auto [word, count] = ranks_asked(command); word != 0) {
    const bool by_slots = tells_slots(all.hosts) && count <= slots_of(all.hosts);
    const std::int64_t most = by_slots ? slots_of(left) : count * std::ssize(left) / std::ssize(all.hosts);
    words[word + 1] = std::to_string(std::min(count, std::max<std::int64_t>(most, 1)));
  }
  for (std::size_t i = all.options.size(); --i > 0;) {
    const auto repeated = words.begin() + static_cast<std::ptrdiff_t>(all.options[i]);
    words.erase(repeated, repeated + 2);
  }
  return words;
}

std::optional<std::int64_t> ranks_on(const MpirunCommand& command, const std::vector<NamedHost>& hosts) {
  if (const RanksAsked ranks = ranks_asked(command); ranks.word != 0) return ranks.count;
  if (!tells_slots(hosts) || may_oversubscribe(command) || has_ranks_of_each(command)) return {};
  return slots_of(hosts);
}

std::vector<NamedHost> hosts_that_answer(const MpirunCommand& command, const NamedHosts& all) try {
  const Scratch scratch;
  std::vector<MpirunCommand> probes;
  for (const NamedHost& host : all.hosts)
    probes.push_back(probe(command, host, scratch.directory(probes.size())));
  const std::vector<bool> answers = which_succeed(probes, kPatience);
  std::vector<NamedHost> left;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i]) left.push_back(all.hosts[i]);
  }
  return left;
} catch (const std::exception& failure) {
  tell(std::string(failure.what()) + "; whether the hosts answer is not asked");
  return all.hosts;
}

}  // namespace penstock::cli
