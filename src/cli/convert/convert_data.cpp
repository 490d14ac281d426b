// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/convert_data.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/convert/byte_progress.h"
#include "files/mapped_file.h"
#include "files/megatron/loss_mask.h"
#include "files/megatron/writer.h"
#include "files/text_blocks.h"
#include "files/tokenizers/byte_tokenizer.h"
#include "files/tokenizers/sentencepiece.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

struct Tokenizer {
  // Any thread. The list, if not null, gets the offset of the last byte of each token.
  std::function<Ids(std::string_view, std::vector<std::size_t>*)> encode;
  std::int64_t vocab = 0;
  std::optional<std::int32_t> end;  // token that ends a document
};

Ids ids_of_bytes(std::string_view text, std::vector<std::size_t>* last) {
  Ids ids(text.size());
  for (std::size_t i = 0; last && i < text.size(); ++i) last->push_back(i);
  std::ranges::transform(text, ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return ids;
}

Tokenizer tokenizer_of(const DataConversion& conversion) {
  if (conversion.sentencepiece.empty()) return {ids_of_bytes, files::kByteVocabulary, files::kEndOfText};
  const auto model = on_behalf_of(
      "--sentencepiece", [&] { return std::make_shared<files::SentencePiece>(conversion.sentencepiece); });
  return {[model](std::string_view text, auto* last) { return model->encode(text, last); }, model->vocab(),
          model->end_of_text()};
}

// Part of a source, encoded separately.
struct Block {
  std::string_view bytes;
  std::int64_t first_line = 1;
  std::size_t begin = 0;  // in its source
  bool last = false;      // block of its source
};

// Tokens of a block in the file's type, and the byte offsets at which documents end.
struct Encoded {
  std::vector<std::byte> tokens;
  std::vector<std::size_t> ends;
  std::string in_loss;  // one byte per token: 1 if it is a target, otherwise 0
  std::size_t source_bytes = 0;
};

// Encodes the blocks of one source. Any thread.
struct Encoder {
  const DataConversion& conversion;
  const Tokenizer& tokenizer;
  const files::JsonDocuments& documents;
  files::TokenType type;
  std::string origin;
  bool json_lines;

  Encoded operator()(const Block& block) const {
    Encoded encoded{.source_bytes = block.bytes.size()};
    if (json_lines) {
      for (const auto& parts :
           files::documents_of_json_lines(block.bytes, documents, origin, block.first_line)) {
        add_parts(encoded, parts);
        end_document(encoded, parts.empty() || parts.back().in_loss);
      }
    } else {
      require_utf8(block);
      add_text(encoded, block.bytes, {});
      if (block.last) end_document(encoded, true);
    }
    return encoded;
  }

  // SentencePiece would take other bytes for unknown characters.
  void require_utf8(const Block& block) const {
    if (conversion.sentencepiece.empty()) return;
    const std::size_t good = utf8_prefix(block.bytes);
    if (good < block.bytes.size())
      throw InputError(origin + ": byte " + std::to_string(block.begin + good + 1) +
                       " is not UTF-8, as --sentencepiece needs; convert the text first, as iconv does");
  }

  // Encodes the parts as one text: SentencePiece puts a space before the beginning of each text.
  void add_parts(Encoded& encoded, std::span<const files::TextPart> parts) const {
    if (parts.size() == 1 && parts[0].in_loss) return add_text(encoded, parts[0].text, {});
    std::string text;
    for (const files::TextPart& part : parts) text += part.text;
    add_text(encoded, text, parts);
  }

  // Encodes in pieces, so that a document has the same tokens as a file and as a line. Without parts, all
  // tokens are targets.
  void add_text(Encoded& encoded, std::string_view text, std::span<const files::TextPart> parts) const {
    std::size_t part = 0, part_end = parts.empty() ? text.size() : parts[0].text.size();
    std::vector<std::size_t> last;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t length = files::first_block(text.substr(begin), conversion.block_bytes, false);
      last.clear();
      add(encoded, tokenizer.encode(text.substr(begin, length), parts.empty() ? nullptr : &last));
      if (parts.empty()) encoded.in_loss.resize(encoded.tokens.size() / size(), 1);
      for (const std::size_t byte : last) {
        while (begin + byte >= part_end && part + 1 < parts.size()) part_end += parts[++part].text.size();
        encoded.in_loss += parts[part].in_loss ? 1 : 0;
      }
      begin += length;
    }
  }

  void end_document(Encoded& encoded, bool in_loss) const {
    if (conversion.append_end) {
      add(encoded, {*tokenizer.end});
      encoded.in_loss += in_loss ? 1 : 0;
    }
    encoded.ends.push_back(encoded.tokens.size());
  }

  std::size_t size() const { return static_cast<std::size_t>(size_of(type)); }  // of a token

  void add(Encoded& encoded, const Ids& ids) const {
    const std::size_t begin = encoded.tokens.size();
    encoded.tokens.resize(begin + ids.size() * size());
    std::byte* target = encoded.tokens.data() + begin;
    for (const std::int32_t id : ids) {
      std::memcpy(target, &id, size());  // little-endian: low bytes first
      target += size();
    }
  }
};

// Iterates over the blocks of a source.
class Blocks {
 public:
  Blocks(std::string_view text, std::size_t wanted, bool json_lines)
      : size_(text.size()), rest_(without_byte_order_mark(text)), wanted_(wanted), json_lines_(json_lines) {}

  std::optional<Block> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t length = files::first_block(rest_, wanted_, json_lines_);
    const Block block{rest_.substr(0, length), line_, size_ - rest_.size(), length == rest_.size()};
    rest_.remove_prefix(length);
    if (json_lines_) line_ += std::ranges::count(block.bytes, '\n');
    return block;
  }

 private:
  std::size_t size_;
  std::string_view rest_;
  std::size_t wanted_;
  bool json_lines_;
  std::int64_t line_ = 1;
};

struct Writers {
  files::MegatronWriter pair;
  files::LossMaskWriter mask;
  bool begun = false;  // the current document has tokens of earlier blocks
};

// A document of the end token alone has no tokens of its own and is dropped; only here are all blocks of a
// document known.
void write(Writers& writers, const Encoded& encoded, const Encoder& encoder) {
  const std::size_t size = encoder.size(), end_token = encoder.conversion.append_end ? size : 0;
  const auto add = [&](std::size_t begin, std::size_t end) {
    writers.pair.add(std::span(encoded.tokens).subspan(begin, end - begin));
    writers.mask.add(std::string_view(encoded.in_loss).substr(begin / size, (end - begin) / size));
  };
  std::size_t begin = 0;
  for (const std::size_t end : encoded.ends) {
    if (writers.begun || end - begin > end_token) add(begin, end);
    writers.pair.end_document();
    writers.begun = false;
    begin = end;
  }
  add(begin, encoded.tokens.size());
  writers.begun |= begin < encoded.tokens.size();
}

// Encodes blocks in parallel and writes them in order, with a limited number in memory.
void convert_source(const Encoder& encoder, std::string_view text, Writers& writers, ByteProgress& progress) {
  Blocks blocks(text, encoder.conversion.block_bytes, encoder.json_lines);
  std::deque<std::future<Encoded>> under_way;
  for (std::optional<Block> block = blocks.next(); block || !under_way.empty();) {
    if (block && under_way.size() < static_cast<std::size_t>(encoder.conversion.threads)) {
      under_way.push_back(std::async(std::launch::async, std::cref(encoder), *block));
      block = blocks.next();
      continue;
    }
    const Encoded encoded = under_way.front().get();
    under_way.pop_front();
    write(writers, encoded, encoder);
    progress.add(static_cast<Bytes>(encoded.source_bytes));
  }
}

// Comes before other refusals of an existing file, which say to remove it.
void require_no_source(const std::string& target, const std::vector<std::string>& sources) {
  std::error_code error;
  for (const std::string& source : sources) {
    if (fs::equivalent(source, target, error))
      throw InputError(printable(target, 500) + " is a source; name another target");
  }
}

void require_free(const std::string& prefix, const std::vector<std::string>& sources) {
  const std::string name = fs::path(prefix).filename();
  if (name.empty() || name == "." || name == "..")
    throw InputError("-o " + json_quote(prefix) + " names no file; give the first part of the files' names");
  std::error_code error;
  const fs::path folder = fs::path(prefix).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    throw InputError(printable(folder.string(), 500) +
                     " is not a directory; make it, or name another target");
  std::vector<std::string> there;
  for (const char* extension : {".bin", ".idx", ".mask"}) {
    require_no_source(prefix + extension, sources);
    if (files::is_there(prefix + extension)) there.push_back(printable(prefix, 500) + extension);
  }
  if (there.empty()) return;
  const bool unfinished = !files::is_there(prefix + ".idx");  // it is renamed last (MegatronWriter::commit)
  throw InputError(join(there, ", ") + (there.size() > 1 ? " already exist" : " already exists") +
                   (unfinished
                        ? " without a .idx, as after a killed convert; remove this, or name another target"
                        : "; name another target"));
}

// Whether the bytes are those of gzip, zstd, xz, bzip2, lz4, zip, 7z, Parquet or Arrow.
bool is_packed(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr std::array kMagics{"\x1F\x8B"sv,         "\x28\xB5\x2F\xFD"sv, "\xFD\x37\x7A\x58\x5A"sv,
                               "\x04\x22\x4D\x18"sv, "PK\x03\x04"sv,       "7z\xBC\xAF\x27\x1C"sv,
                               "ARROW1\0"sv};
  if (std::ranges::any_of(kMagics, [&](std::string_view magic) { return bytes.starts_with(magic); }))
    return true;
  if (bytes.starts_with("BZh") && bytes.substr(std::min<std::size_t>(bytes.size(), 4)).starts_with("1AY&SY"))
    return true;
  return bytes.starts_with("PAR1") && bytes.ends_with("PAR1");
}

// Its bytes would become the tokens of a text.
void require_unpacked(std::string_view bytes, const std::string& source) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF"))
    throw InputError(printable(source, 500) +
                     ": is UTF-16; convert it to UTF-8 first, as iconv -f UTF-16 -t UTF-8 does");
  if (is_packed(bytes)) throw InputError(printable(source, 500) + ": is packed, not text; unpack it first");
}

}  // namespace

bool is_json_lines(const DataConversion& conversion, const std::string& source) {
  std::string extension = fs::path(source).extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return conversion.json_lines || extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
}

std::string convert_data(const DataConversion& conversion) {
  require_free(conversion.prefix, conversion.sources);
  const Tokenizer tokenizer = tokenizer_of(conversion);
  if (conversion.append_end && !tokenizer.end)
    throw InputError("--append-eod: the model " + printable(conversion.sentencepiece, 500) +
                     " has no token for the end of a text; leave it out");
  std::vector<files::MappedFile> texts;
  Bytes total = 0;
  for (const std::string& source : conversion.sources) {
    texts.emplace_back(source);
    require_unpacked(texts.back().text(), source);
    total += static_cast<Bytes>(texts.back().bytes().size());
  }
  const files::TokenType type = files::token_type_for(tokenizer.vocab);
  Writers writers{{conversion.prefix, type}, files::LossMaskWriter(conversion.prefix)};
  const files::JsonDocuments documents{
      conversion.key, on_behalf_of("--chat", [&] { return files::ChatTemplate(conversion.chat); }),
      conversion.loss == "all"};
  ByteProgress progress(total);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& source = conversion.sources[i];
    const Encoder encoder{
        conversion, tokenizer, documents, type, printable(source, 500), is_json_lines(conversion, source)};
    convert_source(encoder, texts[i].text(), writers, progress);
  }
  if (writers.pair.tokens() == 0)
    throw InputError(printable(conversion.sources.front(), 500) +
                     (texts.size() > 1 ? " and the other files have" : " has") + " no text");
  writers.pair.commit(writers.mask.file());
  progress.finish();
  const files::MegatronWriter& writer = writers.pair;
  const std::int64_t in_loss = writers.mask.in_loss();
  const std::string prefix = printable_lines(conversion.prefix);
  const std::string targets = in_loss < writer.tokens()
                                  ? "; " + std::to_string(in_loss) + " of them targets (" + prefix + ".mask)"
                                  : "";
  return prefix + ".bin and .idx: " + counted(writer.tokens(), "token") + " of " +
         counted(size_of(type), "byte") + " in " + counted(writer.documents(), "document") + "; vocabulary " +
         std::to_string(tokenizer.vocab) + targets;
}

}  // namespace penstock::cli
