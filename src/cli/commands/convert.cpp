// SPDX-License-Identifier: Apache-2.0
// penstock convert: converts models and training data to and from other programs' files.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/convert/convert_data.h"
#include "cli/convert/convert_weights.h"
#include "cli/convert/ended_by_signal.h"
#include "cli/input/number_flags.h"

namespace penstock::cli {
namespace {

struct ConvertFlags {
  std::vector<std::string> sources;
  std::string output;
  std::string shard;
  WeightsConversion weights;
  DataConversion data;
};

constexpr const char* kFlagsOfWeights[] = {"--to", "--precision", "--shard", "--config"};
constexpr const char* kFlagsOfData[] = {"--sentencepiece", "--jsonl",      "--key",    "--chat",
                                        "--loss",          "--append-eod", "--threads"};
constexpr const char* kFlagsOfJsonLines[] = {"--key", "--chat", "--loss"};

bool is_model(const std::string& source) {
  std::error_code error;
  return std::filesystem::is_directory(source, error) || source.ends_with(".safetensors");
}

bool is_part_of_model(const std::string& source) {
  const std::string name = std::filesystem::path(source).filename();
  return name == "config.json" || name.ends_with(".safetensors.index.json");
}

void refuse(const CLI::App& command, std::span<const char* const> flags, const std::string& others,
            const std::string& remedy = "leave it out") {
  for (const char* flag : flags) {
    if (command.count(flag) > 0)
      throw InputError(std::string(flag) + " belongs to the conversion of " + others + "; " + remedy);
  }
}

std::string convert(const CLI::App& command, ConvertFlags& flags) {
  if (is_model(flags.sources.front())) {
    refuse(command, kFlagsOfData, "text");
    if (flags.sources.size() > 1)
      throw InputError("\"" + printable(flags.sources[1]) + "\": one model is converted at a time");
    flags.weights.source = flags.sources.front();
    flags.weights.target = flags.output;
    if (!flags.shard.empty()) {
      flags.weights.shard_bytes = on_behalf_of("--shard", [&] { return parse_bytes(flags.shard); });
    }
    return convert_weights(flags.weights);
  }
  refuse(command, kFlagsOfWeights, "models");
  if (command.count("--sentencepiece") > 0 && flags.data.sentencepiece.empty())
    throw InputError("--sentencepiece \"\" names no file");
  for (const std::string& source : flags.sources) {
    if (is_part_of_model(source))
      throw InputError(printable(source, 500) + ": is a part of a model; name its folder");
  }
  flags.data.sources = flags.sources;
  flags.data.prefix = flags.output;
  const auto is_json = [&](const std::string& source) { return is_json_lines(flags.data, source); };
  if (std::ranges::none_of(flags.sources, is_json))
    refuse(command, kFlagsOfJsonLines, "JSON lines", "add --jsonl, or leave it out");
  return convert_data(flags.data);
}

void add_model_flags(CLI::App& command, ConvertFlags& flags) {
  command.add_option("--to", flags.weights.form, "models: format of the output; default: the other one")
      ->check(CLI::IsMember({"huggingface", "penstock"}));
  command
      .add_option("--precision", flags.weights.precision,
                  "models: precision of the written weights; default: as read")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "f64"}));
  command.add_option("--shard", flags.shard,
                     "models: maximum bytes of tensors per weights file, as in \"2 GB\"; default: 5 GB");
  command.add_option("--config", flags.weights.config,
                     "models: a config.json or run file with the model's shape; default: the one next to the "
                     "model");
}

void add_data_flags(CLI::App& command, ConvertFlags& flags) {
  command.add_option("--sentencepiece", flags.data.sentencepiece,
                     "text: a SentencePiece model; default: bytes are the tokens");
  command.add_flag("--jsonl", flags.data.json_lines,
                   "text: each line is a JSON object; default: if the name ends in .jsonl, .ndjson or .json");
  command.add_option("--key", flags.data.key, "text: key of a document's text in the JSON object")
      ->capture_default_str();
  command
      .add_option("--chat", flags.data.chat,
                  "text: template that turns the messages of a JSON object into text: chatml, llama3, or a "
                  "file with the text of one turn, with {role} and {content}")
      ->capture_default_str();
  command.add_option("--loss", flags.data.loss, "text: conversation turns whose tokens are targets")
      ->check(CLI::IsMember({"assistant", "all"}))
      ->capture_default_str();
  command.add_flag("--append-eod", flags.data.append_end,
                   "text: end each document with the tokenizer's end-of-text token");
  flags.data.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command.add_option("--threads", flags.data.threads, "text: encoding threads; default: all cores")
      ->check(whole_number_from(1));
}

}  // namespace

void add_convert_command(CLI::App& program, Exit& exit_code) {
  const auto flags = std::make_shared<ConvertFlags>();
  CLI::App* command = program.add_subcommand(
      "convert",
      "Convert models to Hugging Face's format and back; text and JSON lines to Megatron's .bin and .idx.");
  command
      ->add_option("sources", flags->sources,
                   "a run directory, a checkpoint, a Hugging Face folder or a .safetensors file; or text and "
                   "JSON lines")
      ->required();
  command
      ->add_option("-o,--output", flags->output,
                   "a new folder for a model; for text, PREFIX of PREFIX.bin and PREFIX.idx")
      ->required();
  add_model_flags(*command, *flags);
  add_data_flags(*command, *flags);
  command->callback([command, flags, &exit_code] {
    ended_by_signals([&] {
      std::cout << convert(*command, *flags) << "\n";
      exit_code = Exit::Done;
    });
  });
}

}  // namespace penstock::cli
