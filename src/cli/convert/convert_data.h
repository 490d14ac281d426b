// SPDX-License-Identifier: Apache-2.0
// Converts text or JSON lines to the .bin and .idx files that Megatron and `data.megatron` read.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct DataConversion {
  std::vector<std::string> sources;  // one document per text file or line of JSON
  std::string prefix;
  std::string sentencepiece;       // a tokenizer model; empty: bytes are tokens
  bool json_lines = false;         // reads all sources as JSON lines, whatever their extension
  std::string key = "text";        // of the text in a line of JSON
  std::string chat = "chatml";     // or "llama3", or a file: the template that turns messages into text
  std::string loss = "assistant";  // or "all": turns of a conversation whose tokens are targets
  bool append_end = false;         // adds an end token to each document
  int threads = 1;
  std::size_t block_bytes = 1 << 20;  // bytes per thread and block
};

// Returns whether this source is read as JSON lines.
bool is_json_lines(const DataConversion& conversion, const std::string& source);

// Writes both files, and PREFIX.mask (files/megatron/loss_mask.h) if not all tokens are targets. The files
// appear whole or not at all and do not depend on the number of threads. Progress goes to standard error.
// Returns a one-line summary. Throws InputError naming the wrong file and line of JSON, or the existing
// target.
std::string convert_data(const DataConversion& conversion);

}  // namespace penstock::cli
