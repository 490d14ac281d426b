// SPDX-License-Identifier: Apache-2.0
#include "files/tokenizers/normalizer_check.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"

namespace penstock::files {
namespace {

// Field numbers of sentencepiece_model.proto.
constexpr std::uint32_t kNormalizer = 3, kDenormalizer = 5;  // of ModelProto: NormalizerSpec
constexpr std::uint32_t kCharsMap = 2;                       // of NormalizerSpec: bytes

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return {};
}

std::optional<std::string_view> take(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size()) return {};
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

// Calls visit(field number, bytes) for each length-delimited field. Returns false if a visit does, or for a
// message that is not protobuf or has groups, which no version of the model has.
template <class Visit>
bool for_fields(std::string_view message, Visit&& visit) {
  enum Wire : std::uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return false;
    const auto field_and_wire = static_cast<std::uint32_t>(*tag);  // protobuf drops the bits above
    bool sound = false;
    switch (field_and_wire & 7) {
      case Varint:
        sound = take_varint(message).has_value();
        break;
      case Fixed64:
        sound = take(message, 8).has_value();
        break;
      case Fixed32:
        sound = take(message, 4).has_value();
        break;
      case Bytes: {
        const auto length = take_varint(message);
        const auto field = length ? take(message, *length) : std::nullopt;
        sound = field && visit(field_and_wire >> 3, *field);
        break;
      }
      default:
        break;
    }
    if (!sound) return false;
  }
  return true;
}

// A unit of Darts-clone's double array (Yata): either the value of a leaf, or a label and the XOR distance to
// the block of its children. The label of a value unit never equals a byte.
struct Unit {
  std::uint32_t word;
  std::uint32_t label() const { return word & (1u << 31 | 0xFF); }
  std::uint32_t value() const { return word & 0x7FFFFFFF; }
  bool has_leaf() const { return word >> 8 & 1; }
  std::uint32_t offset() const { return word >> 10 << ((word & 1u << 9) >> 6); }
};

constexpr std::uint32_t kChildren = 256;  // of a unit, by their byte
constexpr int kMostLeaves = 32;           // on a path: SentencePiece has room for 32 on its stack

// Visits every unit that SentencePiece may reach from the root's children. Paths meet where words end alike,
// as in every graph that Darts builds from keys with values; a cycle with a leaf exceeds kMostLeaves.
bool is_sound_trie(std::string_view trie, std::size_t bytes_of_texts) {
  const auto unit = [&](std::uint32_t place) {
    Unit result{};
    std::memcpy(&result, trie.data() + std::size_t{place} * sizeof(Unit), sizeof(Unit));
    return result;
  };
  const auto units = static_cast<std::uint32_t>(trie.size() / sizeof(Unit));  // whole blocks
  const std::uint32_t first = unit(0).offset();
  if (first >= units) return false;
  std::vector<std::int8_t> leaves(units, -1);  // maximum on a path to these children
  std::vector<std::uint32_t> open{first};
  leaves[first] = 0;
  while (!open.empty()) {
    const std::uint32_t children = open.back();
    open.pop_back();
    for (std::uint32_t label = 0; label < kChildren; ++label) {
      const std::uint32_t place = children ^ label;
      const Unit child = unit(place);
      if (child.label() != label) continue;
      const std::uint32_t next = place ^ child.offset();
      if (next >= units || (child.has_leaf() && unit(next).value() >= bytes_of_texts)) return false;
      const int met = leaves[children] + child.has_leaf();
      if (met > kMostLeaves) return false;
      if (met <= leaves[next]) continue;
      leaves[next] = static_cast<std::int8_t>(met);
      open.push_back(next);
    }
  }
  return true;
}

// A map is the length of the trie in bytes (4 bytes, little-endian), the trie, and zero-terminated texts; the
// leaves' values are offsets into the texts.
bool is_sound_map(std::string_view map) {
  std::uint32_t length = 0;
  if (map.empty()) return true;
  if (map.size() < sizeof length) return false;
  std::memcpy(&length, map.data(), sizeof length);
  map.remove_prefix(sizeof length);
  if (length > map.size() || length == 0 || length % (kChildren * sizeof(Unit)) != 0) return false;
  const std::string_view texts = map.substr(length);
  return texts.ends_with('\0') && is_sound_trie(map.substr(0, length), texts.size());
}

}  // namespace

void check_normalizers(std::string_view model, const std::string& origin) {
  bool damaged_map = false;
  const auto is_sound_normalizer = [&](std::string_view normalizer) {
    return for_fields(normalizer, [&](std::uint32_t number, std::string_view bytes) {
      damaged_map |= number == kCharsMap && !is_sound_map(bytes);
      return !damaged_map;
    });
  };
  const bool sound = for_fields(model, [&](std::uint32_t number, std::string_view bytes) {
    return (number != kNormalizer && number != kDenormalizer) || is_sound_normalizer(bytes);
  });
  if (sound) return;
  throw InputError(origin + ": is not a SentencePiece model" +
                   (damaged_map ? ": its table of characters is damaged" : ""));
}

}  // namespace penstock::files
