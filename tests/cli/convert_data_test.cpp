// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/convert_data.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/run_program.h"
#include "failure.h"
#include "files/megatron/data.h"
#include "files/tokenizers/sentencepiece.h"
#include "scratch.h"

namespace penstock::cli {
namespace {

// As by Ctrl-C, which reaches the program in the middle of a long text.
TEST(ConvertData, LeavesNoUnfinishedFilesWhenASignalEndsIt) {
  const Scratch scratch;
  std::string lines;
  while (lines.size() < (std::size_t{48} << 20))
    lines += R"({"text": "a line of some words, and of more"})"
             "\n";
  scratch.write("a.jsonl", lines);
  for (const int number : {SIGINT, SIGTERM}) {
    testing::RunningProgram program(
        {PENSTOCK_PROGRAM, "convert", scratch / "a.jsonl", "-o", scratch / "a", "--threads", "1"});
    const auto files = [&] {
      return std::distance(std::filesystem::directory_iterator(scratch.path()),
                           std::filesystem::directory_iterator());
    };
    while (files() < 2) usleep(1000);
    kill(program.process(), number);
    EXPECT_EQ(program.wait(60).exit_code, 128 + number);
    EXPECT_EQ(files(), 1);
  }
}

// The documents of a pair, token by token.
std::vector<std::vector<std::int64_t>> documents_of(const std::string& prefix) {
  const files::MegatronData data(prefix);
  std::vector<std::vector<std::int64_t>> documents;
  for (std::int64_t document = 0; document < data.index().documents(); ++document) {
    const std::int64_t begin = data.index().document_begin(document);
    documents.emplace_back(static_cast<std::size_t>(data.index().document_begin(document + 1) - begin));
    data.read(begin, documents.back(), 1 << 30);
  }
  return documents;
}

std::vector<std::int64_t> bytes_of(std::string_view text) {
  std::vector<std::int64_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string words(std::uint64_t seed, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(i));
    text += (bits % 7 == 0 ? "\n" : " ") + std::string(1 + bits % 5, static_cast<char>('a' + bits / 8 % 9));
  }
  return text;
}

// A model of 60 pieces.
std::string train_model(const Scratch& scratch) {
  scratch.write("corpus", words(1, 4000));
  const std::string prefix = scratch / "model";
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      "--input=" + scratch / "corpus" + " --model_prefix=" + prefix +
      " --vocab_size=60 --hard_vocab_limit=false --minloglevel=2");
  EXPECT_TRUE(status.ok()) << status.ToString();
  return prefix + ".model";
}

TEST(ConvertData, MakesADocumentOfEachTextAndATokenOfEachByte) {
  const Scratch scratch;
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);  // no UTF-8
  scratch.write("a.txt", all);
  scratch.write("empty.txt", "");
  scratch.write("b.txt", "second");
  convert_data({.sources = {scratch / "a.txt", scratch / "empty.txt", scratch / "b.txt"},
                .prefix = scratch / "x",
                .block_bytes = 10});
  const auto documents = documents_of(scratch / "x");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0], bytes_of(all));
  EXPECT_EQ(documents[1], bytes_of("second"));
  EXPECT_EQ(std::filesystem::file_size(scratch / "x.bin"), 2 * (256u + 6u));
}

TEST(ConvertData, RefusesFilesWithoutText) {
  const Scratch scratch;
  scratch.write("empty.txt", "");
  scratch.write("empty.jsonl", "\n{\"text\": \"\"}\n");
  for (const char* name : {"empty.txt", "empty.jsonl"}) {
    EXPECT_EQ(
        failure<InputError>([&] { convert_data({.sources = {scratch / name}, .prefix = scratch / "x"}); }),
        scratch / name + " has no text");
    EXPECT_FALSE(std::filesystem::exists(scratch / "x.bin"));
  }
}

TEST(ConvertData, MakesADocumentOfEachLineOfJson) {
  const Scratch scratch;
  std::string lines;
  std::vector<std::vector<std::int64_t>> wanted;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string text = words(i, static_cast<int>(i % 30));
    lines += "{\"id\": " + std::to_string(i) + ", \"text\": " + json_quote(text) + "}\n";
    if (!text.empty()) wanted.push_back(bytes_of(text));
  }
  scratch.write("x.jsonl", lines);
  for (const int threads : {1, 2, 5}) {
    const std::string prefix = scratch / std::to_string(threads);
    convert_data(
        {.sources = {scratch / "x.jsonl"}, .prefix = prefix, .threads = threads, .block_bytes = 300});
    EXPECT_EQ(documents_of(prefix), wanted);
  }
  EXPECT_EQ(scratch.read("1.bin"), scratch.read("5.bin"));
  EXPECT_EQ(scratch.read("1.idx"), scratch.read("5.idx"));
}

TEST(ConvertData, EncodesWithASentencePieceModel) {
  const Scratch scratch;
  const std::string path = train_model(scratch);
  const files::SentencePiece model(path);
  scratch.write("x.txt", words(2, 1000));
  scratch.write("x.jsonl", "{\"text\": " + json_quote(words(2, 1000)) + "}\n");
  const auto ids = model.encode(words(2, 1000));
  for (const char* name : {"x.txt", "x.jsonl"}) {
    const std::string prefix = scratch / (std::string(name) + "-ids");
    convert_data({.sources = {scratch / name},
                  .prefix = prefix,
                  .sentencepiece = path,
                  .append_end = true,
                  .threads = 2});
    std::vector<std::int64_t> wanted(ids.begin(), ids.end());
    wanted.push_back(*model.end_of_text());
    EXPECT_EQ(documents_of(prefix), (std::vector<std::vector<std::int64_t>>{wanted})) << name;
  }
}

TEST(ConvertData, EndsDocumentsWithATokenWhenAskedAndDropsThoseWithoutOthers) {
  const Scratch scratch;
  scratch.write("x.jsonl", "{\"text\": \"\"}\n{\"text\": \"a\"}\n{\"text\": \"\"}\n");
  scratch.write("empty.txt", "");
  scratch.write("long.txt", std::string(25, 'b'));
  for (const std::size_t block_bytes : {1, 10, 25, 1000}) {
    const std::string prefix = scratch / std::to_string(block_bytes);
    convert_data({.sources = {scratch / "x.jsonl", scratch / "empty.txt", scratch / "long.txt"},
                  .prefix = prefix,
                  .append_end = true,
                  .block_bytes = block_bytes});
    std::vector<std::int64_t> blocks(25, 'b');
    blocks.push_back(257);
    EXPECT_EQ(documents_of(prefix), (std::vector<std::vector<std::int64_t>>{{'a', 257}, blocks}));
  }
}

TEST(ConvertData, MasksWhatIsNoTargetOfConversations) {
  const Scratch scratch;
  std::string lines, tokens, in_loss;
  for (int i = 0; i < 200; ++i) {
    if (i >= 150) {
      const std::string answer = "n" + std::to_string(i);
      lines += R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ")" +
               answer + "\"}]}\n";
      const std::string before = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n",
                        after = answer + "<|im_end|>\n";
      tokens += before + after;
      in_loss += std::string(before.size(), 0) + std::string(after.size(), 1);
    } else {
      lines += "{\"text\": \"plain\"}\n";
      tokens += "plain";
      in_loss += std::string(5, 1);
    }
  }
  scratch.write("x.jsonl", lines);
  for (const std::string loss : {"assistant", "all"}) {
    const std::string prefix = scratch / loss;
    const std::string said = convert_data(
        {.sources = {scratch / "x.jsonl"}, .prefix = prefix, .loss = loss, .threads = 3, .block_bytes = 300});
    std::string got;
    for (const auto& document : documents_of(prefix)) got.append(document.begin(), document.end());
    EXPECT_EQ(got, tokens);
    EXPECT_EQ(std::filesystem::exists(prefix + ".mask"), loss == "assistant");
    EXPECT_EQ(said.find("of them targets") != std::string::npos, loss == "assistant") << said;
  }
  EXPECT_EQ(scratch.read("assistant.mask"), in_loss);
}

// Encoded alone, each part would begin with a space that the conversation does not have.
TEST(ConvertData, EncodesAConversationAsOneText) {
  const Scratch scratch;
  const std::string path = train_model(scratch);
  scratch.write("turn.txt", "a{content}a b");
  const std::string text = "abbda baccea b";
  std::string lines;
  for (int i = 0; i < 3; ++i)
    lines +=
        "{\"messages\": [{\"role\": \"user\", \"content\": \"bbd\"}, "
        "{\"role\": \"assistant\", \"content\": \"cce\"}]}\n";
  scratch.write("x.jsonl", lines);
  sentencepiece::SentencePieceProcessor model;
  ASSERT_TRUE(model.Load(path).ok());
  for (const std::size_t block : {1 << 20, 100}) {
    const std::string prefix = scratch / std::to_string(block);
    convert_data({.sources = {scratch / "x.jsonl"},
                  .prefix = prefix,
                  .sentencepiece = path,
                  .chat = scratch / "turn.txt",
                  .block_bytes = block});
    const std::vector<int> ids = model.EncodeAsIds(text);
    const auto documents = documents_of(prefix);
    ASSERT_EQ(documents.size(), 3u);
    EXPECT_EQ(documents[2], std::vector<std::int64_t>(ids.begin(), ids.end()));
    const std::string mask = scratch.read(std::to_string(block) + ".mask");
    ASSERT_EQ(mask.size(), 3 * ids.size());
    std::size_t end = 0;  // of the token, in the text with the space before it
    for (std::size_t i = 0; i < ids.size(); ++i) {
      for (const char c : model.IdToPiece(ids[i])) end += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      EXPECT_EQ(mask[ids.size() + i], end - 1 > std::string_view("abbda ba").size() ? 1 : 0) << i;
    }
  }
}

TEST(ConvertData, DropsAByteOrderMark) {
  const Scratch scratch;
  const std::string mark = "\xEF\xBB\xBF";
  scratch.write("a.txt", mark + "text");
  scratch.write("b.jsonl", mark + "\n{\"text\": \"line\"}\n");
  scratch.write("turn.txt", mark + "{content};");
  scratch.write("c.jsonl", R"({"messages": [{"role": "assistant", "content": "said"}]})");
  convert_data({.sources = {scratch / "a.txt", scratch / "b.jsonl", scratch / "c.jsonl"},
                .prefix = scratch / "x",
                .chat = scratch / "turn.txt"});
  EXPECT_EQ(documents_of(scratch / "x"),
            (std::vector<std::vector<std::int64_t>>{bytes_of("text"), bytes_of("line"), bytes_of("said;")}));
}

TEST(ConvertData, RefusesWhatIsNotUtf8) {
  const Scratch scratch;
  const auto refusal = [&](const std::string& text, const std::string& model) {
    scratch.write("a.txt", text);
    return failure<InputError>([&] {
      convert_data({.sources = {scratch / "a.txt"},
                    .prefix = scratch / "x",
                    .sentencepiece = model,
                    .block_bytes = 4});
    });
  };
  EXPECT_NE(refusal("abcd\xC3\xA9 abc\xE9", train_model(scratch)).find("a.txt: byte 11 is not UTF-8"),
            std::string::npos);
  EXPECT_NE(refusal(std::string("\xFF\xFE") + "a", "").find("a.txt: is UTF-16"), std::string::npos);
}

TEST(ConvertData, RefusesTwoTextsOfOneLine) {
  const Scratch scratch;
  scratch.write("a.jsonl", R"({"x": {"text": 1}, "y": 1, "y": 2, "text": "a", "text": "b"})");
  EXPECT_EQ(
      failure<InputError>([&] { convert_data({.sources = {scratch / "a.jsonl"}, .prefix = scratch / "x"}); }),
      scratch / "a.jsonl:1: has the name \"text\" twice");
}

TEST(ConvertData, RefusesPartsOfAModelAndEmptyNames) {
  const Scratch scratch;
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    scratch.write(name, "{}");
    const testing::Ending ending = testing::program({"convert", scratch / name, "-o", scratch / "x"});
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_NE(ending.err.find("is a part of a model; name its folder"), std::string::npos) << ending.err;
  }
  scratch.write("a.txt", "text");
  const testing::Ending unset =
      testing::program({"convert", scratch / "a.txt", "-o", scratch / "x", "--sentencepiece", ""});
  EXPECT_EQ(unset.exit_code, 2);
  EXPECT_NE(unset.err.find("--sentencepiece \"\" names no file"), std::string::npos) << unset.err;
  EXPECT_NE(failure<InputError>([&] {
              convert_data({.sources = {scratch / "a.txt"}, .prefix = scratch / ".."});
            }).find("names no file"),
            std::string::npos);
}

TEST(ConvertData, LeavesNothingWhenALineIsWrong) {
  const Scratch scratch;
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += i == 700 ? "{\"text\": 1}\n" : "{\"text\": \"line\"}\n";
  scratch.write("x.jsonl", lines);
  const DataConversion conversion{
      .sources = {scratch / "x.jsonl"}, .prefix = scratch / "x", .threads = 3, .block_bytes = 100};
  EXPECT_NE(failure<InputError>([&] { convert_data(conversion); }).find("x.jsonl:701: \"text\" is number"),
            std::string::npos);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

// A forgotten --jsonl would make one document of the raw JSON.
TEST(ConvertData, RefusesWhatIsOfJsonLinesWhereThereAreNone) {
  const Scratch scratch;
  scratch.write("corpus.txt", "{\"content\": \"a\"}\n");
  const testing::Arguments convert{"convert", scratch / "corpus.txt", "-o", scratch / "x"};
  for (const auto& [flag, value] : {std::pair{"--key", "content"}, {"--chat", "llama3"}, {"--loss", "all"}}) {
    const testing::Ending ending = testing::program(testing::with(convert, {flag, value}));
    EXPECT_EQ(ending.exit_code, 2);
    EXPECT_NE(ending.err.find(std::string(flag) + " belongs to the conversion of JSON lines; add --jsonl"),
              std::string::npos)
        << ending.err;
  }
  EXPECT_EQ(testing::program(testing::with(convert, {"--key", "content", "--jsonl"})).exit_code, 0);
  EXPECT_EQ(documents_of(scratch / "x"), (std::vector<std::vector<std::int64_t>>{{'a'}}));
}

TEST(ConvertData, RefusesWhatItCannotReadOrWouldWriteOver) {
  const Scratch scratch;
  scratch.write("x.txt", "text");
  scratch.write("there.idx", "");
  const auto refusal = [&](const DataConversion& conversion) {
    return failure<InputError>([&] { convert_data(conversion); });
  };
  EXPECT_NE(refusal({.sources = {scratch / "x.txt"}, .prefix = scratch / "there"})
                .find("there.idx already exists; name another target"),
            std::string::npos);
  EXPECT_NE(refusal({.sources = {scratch / "none"}, .prefix = scratch / "y"}).find("none: cannot be opened"),
            std::string::npos);
  EXPECT_NE(
      refusal({.sources = {scratch / "x.txt"}, .prefix = scratch / "no/y"}).find("no is not a directory"),
      std::string::npos);
  EXPECT_NE(
      refusal({.sources = {scratch / "x.txt"}, .prefix = scratch / "y", .sentencepiece = scratch / "x.txt"})
          .find("--sentencepiece: " + scratch / "x.txt" + ": is not a SentencePiece model"),
      std::string::npos);
}

// The advice for other files in the way, to remove them, would lose the text.
TEST(ConvertData, KeepsASourceThatHasTheTargetsName) {
  const Scratch scratch;
  for (const char* name : {"q.bin", "q.idx", "q.mask"}) {
    scratch.write(name, "text");
    const std::string said =
        failure<InputError>([&] { convert_data({.sources = {scratch / name}, .prefix = scratch / "q"}); });
    EXPECT_EQ(said, scratch / name + " is a source; name another target");
    std::filesystem::remove(scratch / name);
  }
}

TEST(ConvertData, RefusesACompressedText) {
  const Scratch scratch;
  for (const char* magic :
       {"\x1F\x8B", "\x28\xB5\x2F\xFD", "\xFD\x37\x7A\x58\x5A", "BZh91AY&SY", "PK\x03\x04"}) {
    scratch.write("x.txt", magic + std::string("rest"));
    const std::string said =
        failure<InputError>([&] { convert_data({.sources = {scratch / "x.txt"}, .prefix = scratch / "x"}); });
    EXPECT_EQ(said, scratch / "x.txt" + ": is packed, not text; unpack it first");
  }
  EXPECT_FALSE(std::filesystem::exists(scratch / "x.idx"));
  scratch.write("x.txt", "BZh and PAR1 may begin a text");
  EXPECT_NO_THROW(convert_data({.sources = {scratch / "x.txt"}, .prefix = scratch / "x"}));
}

// The .idx gets its name last.
TEST(ConvertData, SaysThatFilesAreLeftByAKilledConvert) {
  const Scratch scratch;
  scratch.write("x.txt", "text");
  for (const char* file : {"killed.mask", "killed.bin"}) scratch.write(file, "");
  const std::string said = failure<InputError>(
      [&] { convert_data({.sources = {scratch / "x.txt"}, .prefix = scratch / "killed"}); });
  EXPECT_NE(said.find("killed.bin, "), std::string::npos) << said;
  EXPECT_NE(said.find("killed.mask already exist without a .idx, as after a killed convert; remove this"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace penstock::cli
