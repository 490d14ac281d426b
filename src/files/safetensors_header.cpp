// SPDX-License-Identifier: Apache-2.0
#include "files/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "files/strict_json.h"

namespace penstock::files {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr int kDeepestHeader = 4;  // nesting: header, tensor, list, number
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  ElementType type;
  std::string_view name;
  std::size_t size;
};
constexpr TypeName kTypes[] = {
    {ElementType::Bool, "BOOL", 1},      {ElementType::U8, "U8", 1},          {ElementType::I8, "I8", 1},
    {ElementType::F8E4M3, "F8_E4M3", 1}, {ElementType::F8E5M2, "F8_E5M2", 1}, {ElementType::U16, "U16", 2},
    {ElementType::I16, "I16", 2},        {ElementType::F16, "F16", 2},        {ElementType::BF16, "BF16", 2},
    {ElementType::U32, "U32", 4},        {ElementType::I32, "I32", 4},        {ElementType::F32, "F32", 4},
    {ElementType::U64, "U64", 8},        {ElementType::I64, "I64", 8},        {ElementType::F64, "F64", 8}};

// Location of a header entry, for messages.
struct Entry {
  std::string_view origin;
  std::string_view name;

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(std::string(origin) + ": tensor \"" + printable(name, 200) + "\" " + what);
  }
};

ElementType parse_type(const Entry& entry, const json& value) {
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump().substr(0, 60);
  for (const TypeName& known : kTypes) {
    if (value.is_string() && known.name == name) return known.type;
  }
  entry.fail("has the unknown dtype \"" + printable(name) + "\"; expected F64, F32, F16, BF16, I64, ...");
}

std::vector<std::int64_t> parse_counts(const Entry& entry, const char* key, const json& value) {
  if (!value.is_array()) entry.fail(std::string("has a ") + key + " that is not a list");
  std::vector<std::int64_t> counts;
  for (const json& element : value) {
    const bool good = element.is_number_unsigned() && element.get<std::uint64_t>() < kMostBytes;
    if (!good) {
      entry.fail(std::string("has ") + printable(element.dump().substr(0, 60)) + " in its " + key +
                 "; expected whole numbers from 0 to 2^62");
    }
    counts.push_back(static_cast<std::int64_t>(element.get<std::uint64_t>()));
  }
  return counts;
}

const json& member(const Entry& entry, const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) entry.fail(std::string("has no ") + key);
  return *found;
}

StoredTensor parse_tensor(const Entry& entry, const json& object, std::span<const std::byte> data) {
  if (!object.is_object()) entry.fail("is not an object with dtype, shape and data_offsets");
  StoredTensor tensor{.name = std::string(entry.name)};
  tensor.type = parse_type(entry, member(entry, object, "dtype"));
  tensor.shape = parse_counts(entry, "shape", member(entry, object, "shape"));
  const auto offsets = parse_counts(entry, "data_offsets", member(entry, object, "data_offsets"));
  if (offsets.size() != 2) entry.fail("has " + std::to_string(offsets.size()) + " data_offsets; expected 2");
  const auto begin = static_cast<std::uint64_t>(offsets[0]), end = static_cast<std::uint64_t>(offsets[1]);
  const std::string range = "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
  if (begin > end) entry.fail("has offsets that run backwards: " + range);
  if (end > data.size()) {
    entry.fail("has offsets " + range + " past the end of the data, " + std::to_string(data.size()) +
               " bytes");
  }
  const auto expected = bytes_of_shape(tensor.shape, tensor.type);
  if (!expected) entry.fail("has a shape whose product overflows");
  if (*expected != end - begin) {
    entry.fail("has offsets " + range + " of " + std::to_string(end - begin) +
               " bytes; its shape and dtype need " + std::to_string(*expected));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

Metadata parse_metadata(const json& object, std::string_view origin) {
  Metadata metadata;
  const std::string failure = std::string(origin) + ": __metadata__ must map texts to texts";
  if (!object.is_object()) throw InputError(failure);
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) throw InputError(failure);
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// Checks that every byte of the data belongs to exactly one tensor.
void check_cover(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                 std::string_view origin) {
  std::size_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    const auto begin = static_cast<std::size_t>(tensor.bytes.data() - data.data());
    const Entry entry{origin, tensor.name};
    const std::string where = "begins at " + std::to_string(begin) + "; expected " + std::to_string(covered);
    if (begin < covered) entry.fail(where + ": it overlaps the tensor before it");
    if (begin > covered) entry.fail(where + ": there is a hole before it");
    covered += tensor.bytes.size();
  }
  if (covered != data.size()) {
    throw InputError(std::string(origin) + ": the tensors end at " + std::to_string(covered) +
                     ", but there are " + std::to_string(data.size()) + " bytes of data");
  }
}

}  // namespace

std::string_view name_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::size_t size_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::optional<std::uint64_t> bytes_of_shape(const std::vector<std::int64_t>& shape, ElementType type) {
  if (std::ranges::any_of(shape, [](std::int64_t length) { return length < 0; })) return std::nullopt;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t length : shape) {
    if (bytes > kMostBytes / static_cast<std::uint64_t>(length)) return std::nullopt;
    bytes *= static_cast<std::uint64_t>(length);
  }
  return bytes;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::span<const std::byte> data,
                                           std::string_view origin) {
  const json document = parse_strictly(text, origin, "the header", kDeepestHeader);
  if (!document.is_object()) throw InputError(std::string(origin) + ": the header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : document.items()) {
    if (name == kMetadata) {
      header.metadata = parse_metadata(value, origin);
    } else {
      header.tensors.push_back(parse_tensor({origin, name}, value, data));
    }
  }
  std::ranges::sort(header.tensors, {}, [](const StoredTensor& tensor) {
    return std::pair(tensor.bytes.data(), tensor.bytes.data() + tensor.bytes.size());
  });
  check_cover(header.tensors, data, origin);
  return header;
}

std::string print_safetensors_header(std::span<const StoredTensor> tensors, const Metadata& metadata) {
  std::vector<std::pair<std::string, nlohmann::ordered_json>>
      members;  // ordered JSON searches all of its own
  std::set<std::string_view> names{kMetadata};
  if (!metadata.empty()) members.emplace_back(kMetadata, metadata);
  std::uint64_t begin = 0;
  for (const StoredTensor& tensor : tensors) {
    const auto bytes = bytes_of_shape(tensor.shape, tensor.type);
    PENSTOCK_CHECK(bytes.has_value(), "a tensor that is written has a size");
    const std::uint64_t end = begin + *bytes;
    PENSTOCK_CHECK(names.insert(tensor.name).second, "tensors have names of their own");
    members.emplace_back(tensor.name, nlohmann::ordered_json{{"dtype", name_of(tensor.type)},
                                                             {"shape", tensor.shape},
                                                             {"data_offsets", {begin, end}}});
    begin = end;
  }
  std::string text =
      nlohmann::ordered_json(nlohmann::ordered_json::object_t(members.begin(), members.end())).dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace penstock::files
