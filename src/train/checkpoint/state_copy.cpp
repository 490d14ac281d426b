// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/state_copy.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "files/checksum.h"
#include "files/strict_json.h"

namespace penstock::train {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;

class CopyReader {
 public:
  explicit CopyReader(std::string_view origin) : origin_(origin) {}

  [[noreturn]] void fail(const std::string& what) const { throw InputError(origin_ + ": " + what); }

  const Json& member(const Json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail("\"" + std::string(key) + "\" is missing");
    return *found;
  }

  std::int64_t integer(const Json& value, std::int64_t least, std::int64_t most) const {
    if (!value.is_number_integer() || value < least || value > most)
      fail(printable(value.dump(), 50) + " is not an integer from " + std::to_string(least) + " to " +
           std::to_string(most));
    return value.get<std::int64_t>();
  }

  std::string text(const Json& value) const {
    if (!value.is_string()) fail(printable(value.dump(), 50) + " is not text");
    return value.get<std::string>();
  }

  const Json& list(const Json& value) const {
    if (!value.is_array()) fail(printable(value.dump(), 50) + " is not a list");
    return value;
  }

 private:
  std::string origin_;
};

files::ElementType type_of(const std::string& name, const CopyReader& reader) {
  for (const files::ElementType type : {files::ElementType::F32, files::ElementType::F64}) {
    if (name_of(type) == name) return type;
  }
  reader.fail("\"" + printable(name) + "\" is not a type of weights");
}

std::vector<RangeRun> runs_in(const Json& json, std::int64_t elements, const CopyReader& reader) {
  std::vector<RangeRun> runs;
  std::int64_t end = 0;  // of the ranges so far
  for (const Json& numbers : reader.list(json)) {
    if (reader.list(numbers).size() != 4) reader.fail("a run of ranges has four numbers");
    RangeRun run;
    run.first = reader.integer(numbers[0], end, elements);
    run.count = reader.integer(numbers[1], 1, elements);
    run.times = reader.integer(numbers[3], 1, elements / run.count);
    const std::int64_t most = run.times > 1 ? elements / (run.times - 1) : 0;
    run.stride = reader.integer(numbers[2], run.times > 1 ? run.count : 0, most);
    end = run.first + run.stride * (run.times - 1) + run.count;
    if (end > elements) reader.fail("a range is outside of its tensor");
    runs.push_back(run);
  }
  return runs;
}

std::string number_of(const char* key, const Json& json, const CopyReader& reader) {
  std::string number = reader.text(reader.member(json, key));
  if (!files::parse_checksum(number))
    reader.fail("\"" + std::string(key) + "\" is not a number of 16 hexadecimal digits");
  return number;
}

CopiedTensor tensor_in(const Json& json, const CopyReader& reader) {
  CopiedTensor tensor;
  tensor.name = reader.text(reader.member(json, "name"));
  tensor.type = type_of(reader.text(reader.member(json, "type")), reader);
  std::int64_t elements = 1;
  for (const Json& size : reader.list(reader.member(json, "shape"))) {
    tensor.shape.push_back(reader.integer(size, 1, kMostElements / elements));
    elements *= tensor.shape.back();
  }
  tensor.runs = runs_in(reader.member(json, "runs"), elements, reader);
  return tensor;
}

}  // namespace

std::uint64_t CopiedTensor::bytes() const {
  std::uint64_t elements = 0;
  for (const RangeRun& run : runs) elements += static_cast<std::uint64_t>(run.count * run.times);
  return elements * size_of(type);
}

std::uint64_t CopiedTensor::whole_bytes() const {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<std::uint64_t>(size);
  return elements * size_of(type);
}

std::uint64_t StateCopy::bytes() const {
  std::uint64_t bytes = 0;
  for (const CopiedTensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

std::string to_json(const StateCopy& facts) {
  Json tensors = Json::array();
  for (const CopiedTensor& tensor : facts.tensors) {
    Json runs = Json::array();
    for (const RangeRun& run : tensor.runs) runs.push_back({run.first, run.count, run.stride, run.times});
    tensors.push_back(
        {{"name", tensor.name}, {"type", name_of(tensor.type)}, {"shape", tensor.shape}, {"runs", runs}});
  }
  return Json{{"run", facts.run},
              {"start", facts.start},
              {"step", facts.step},
              {"ranks", facts.ranks},
              {"rank", facts.rank},
              {"checkpoint", facts.checkpoint},
              {"tensors", std::move(tensors)},
              {"sum", files::checksum_text(facts.sum)}}
      .dump();
}

StateCopy parse_state_copy(std::string_view text, std::string_view origin) {
  const CopyReader reader(origin);
  const Json json = files::parse_or_discard(text);
  if (!json.is_object()) reader.fail("is not a copy of a run's state");
  StateCopy facts;
  facts.run = number_of("run", json, reader);
  facts.start = number_of("start", json, reader);
  facts.step = reader.integer(reader.member(json, "step"), 1, kMostElements);
  facts.ranks = static_cast<int>(reader.integer(reader.member(json, "ranks"), 1, kMostRanks));
  facts.rank = static_cast<int>(reader.integer(reader.member(json, "rank"), 0, facts.ranks - 1));
  facts.checkpoint = reader.text(reader.member(json, "checkpoint"));
  for (const Json& tensor : reader.list(reader.member(json, "tensors"))) {
    if (!tensor.is_object()) reader.fail("a tensor is not an object");
    facts.tensors.push_back(tensor_in(tensor, reader));
  }
  const auto sum = files::parse_checksum(reader.text(reader.member(json, "sum")));
  if (!sum) reader.fail("\"sum\" is not a checksum");
  facts.sum = *sum;
  return facts;
}

}  // namespace penstock::train
