// SPDX-License-Identifier: Apache-2.0
// Text or JSON lines into the .bin and .idx files that Megatron and `data.megatron` read.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct DataConversion {
  std::vector<std::string> sources;  // a text file is one document, a line of JSON is one
  std::string prefix;
  std::string sentencepiece;       // a tokenizer model; empty: bytes are tokens
  bool json_lines = false;         // for any file extension
  std::string key = "text";        // of a line of JSON
  std::string chat = "chatml";     // or "llama3", or a file: how messages become text
  std::string loss = "assistant";  // or "all": the turns of a conversation whose tokens are targets
  bool append_end = false;         // a token for the end of each document
  int threads = 1;
  std::size_t block_bytes = 1 << 20;  // bytes per thread and block
};

// Whether the lines of this source are taken as JSON.
bool is_json_lines(const DataConversion& conversion, const std::string& source);

// Writes both files, and where not all tokens are targets PREFIX.mask (files/megatron/loss_mask.h); they
// appear whole or not at all, and do not depend on the number of threads. Progress goes to standard error.
// Returns a one-line summary. Throws InputError naming the wrong file and line of JSON, or the existing
// target.
std::string convert_data(const DataConversion& conversion);

}  // namespace penstock::cli
