// SPDX-License-Identifier: Apache-2.0
#include "files/tokenizers/normalizer_check.h"

#include <cstdint>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace penstock::files {
namespace {

// Numbers of fields in sentencepiece_model.proto.
constexpr std::uint64_t kNormalizer = 3, kDenormalizer = 5;  // of ModelProto: NormalizerSpec
constexpr std::uint64_t kCharsMap = 2;                       // of NormalizerSpec: bytes

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

// visit(number of the field, bytes) of each field that has bytes. False: not a protobuf message, or one with
// groups, which no version of the model has.
template <class Visit>
bool for_fields(std::string_view message, Visit&& visit) {
  enum Wire : std::uint64_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag) return false;
    bool sound = false;
    switch (*tag & 7) {
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
        sound = field && visit(*tag >> 3, *field);
        break;
      }
      default:
        break;
    }
    if (!sound) return false;
  }
  return true;
}

// A unit of Darts-clone's double array (Yata): either the value of a leaf, or a label and the distance, by
// exclusive or, to the block of its children.
struct Unit {
  std::uint32_t word;
  bool is_value() const { return word >> 31; }
  std::uint32_t value() const { return word & 0x7FFFFFFF; }
  bool has_leaf() const { return word >> 8 & 1; }
  std::uint32_t offset() const { return word >> 10 << ((word & 1u << 9) >> 6); }
};

// A map is the length of the trie in bytes (4, little endian), the trie, and texts, each ended by a zero, to
// which the values of its leaves are offsets.
bool is_sound_map(std::string_view map) {
  constexpr std::uint32_t kBlock = 256;  // children of a unit, by their byte
  std::uint32_t length = 0;
  if (map.empty()) return true;
  if (map.size() < sizeof length) return false;
  std::memcpy(&length, map.data(), sizeof length);
  map.remove_prefix(sizeof length);
  if (length > map.size() || length == 0 || length % (kBlock * sizeof(Unit)) != 0) return false;
  const std::string_view texts = map.substr(length);
  const std::uint32_t units = length / sizeof(Unit);
  const auto unit = [&](std::uint32_t place) {
    Unit result{};
    std::memcpy(&result, map.data() + std::size_t{place} * sizeof(Unit), sizeof(Unit));
    return result;
  };
  if (texts.empty() || texts.back() != '\0') return false;
  for (std::uint32_t place = 0; place < units; ++place) {
    const Unit here = unit(place);
    if (here.is_value()) continue;
    const std::uint32_t children = place ^ here.offset();
    if (children >= units) return false;  // whole blocks: then all children are within
    if (here.has_leaf() && unit(children).value() >= texts.size()) return false;
  }
  return true;
}

}  // namespace

void check_normalizers(std::string_view model, const std::string& origin) {
  const auto is_sound_normalizer = [](std::string_view normalizer) {
    return for_fields(normalizer, [](std::uint64_t number, std::string_view bytes) {
      return number != kCharsMap || is_sound_map(bytes);
    });
  };
  const bool sound = for_fields(model, [&](std::uint64_t number, std::string_view bytes) {
    return (number != kNormalizer && number != kDenormalizer) || is_sound_normalizer(bytes);
  });
  if (!sound) throw InputError(origin + ": is no SentencePiece model: its table of characters is damaged");
}

}  // namespace penstock::files
