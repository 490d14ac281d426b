// SPDX-License-Identifier: Apache-2.0
#include "schedule/program_text.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "schedule/program_words.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

std::string_view peer_word(OpKind kind) {
  if (is_send(kind)) return "to";
  return is_receive(kind) ? "from" : "with";
}

std::string line_of(const DeviceProgram& device, std::uint32_t index, bool with_slice) {
  const Op& op = device.ops[index];
  std::string line = std::to_string(index) + " " + to_token(op, with_slice);
  if (op.peer >= 0) line.append(" ").append(peer_word(op.kind)).append(" ").append(std::to_string(op.peer));
  if (op.group != mesh::Group::Pipeline) line.append(" over ").append(mesh::name_of(op.group));
  if (op.bytes != 0) line += " bytes " + std::to_string(op.bytes);
  const char* separator = " after ";
  for (const std::uint32_t wait : device.after_of(op)) {
    line += separator + std::to_string(wait);
    separator = ",";
  }
  return line + "\n";
}

std::string line_of(const Exchange& exchange, bool with_slice) {
  return "exchange " + to_token(exchange.of, with_slice) + " on " + std::to_string(exchange.owner) + " by " +
         std::to_string(exchange.partner) + " during " + to_token(exchange.during, with_slice) + " halves " +
         std::to_string(exchange.first_half) + "+" + std::to_string(exchange.halves) + " bytes " +
         std::to_string(exchange.request) + "+" + std::to_string(exchange.reply) + "\n";
}

}  // namespace

std::string to_token(const Op& op, bool with_slice) {
  const OpWord word = word_of(op.kind);
  if (word.key == KeyForm::None) return std::string(word.text);
  std::string token = std::to_string(op.key.stage).append(word.text);
  if (word.key == KeyForm::Stage) return token;
  token += std::to_string(op.key.micro_batch);
  return with_slice ? token + "." + std::to_string(op.key.slice) : token;
}

std::string to_text(const Program& program) {
  const bool with_slice = is_sliced(program);
  std::string text = std::string(kProgramMagic) + "\nname " + printable(program.name, program.name.size());
  text += "\nstages " + std::to_string(program.stages) + "\nslices ";
  for (std::size_t j = 0; j < program.slices.size(); ++j)
    text += (j > 0 ? "," : "") + std::to_string(program.slices[j]);
  text += "\n";
  for (int device = 0; device < program.device_count(); ++device) {
    text += "device " + std::to_string(device) + "\n";
    const DeviceProgram& list = program.devices[device];
    for (std::uint32_t i = 0; i < list.ops.size(); ++i) text += line_of(list, i, with_slice);
  }
  for (const Exchange& exchange : program.exchanges) text += line_of(exchange, with_slice);
  return text;
}

}  // namespace penstock::schedule
