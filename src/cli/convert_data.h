// SPDX-License-Identifier: Apache-2.0
// Text or JSON lines into the .bin and .idx files that Megatron and `data.megatron` read.
#pragma once

#include <string>
#include <vector>

namespace penstock::cli {

struct DataConversion {
  std::vector<std::string> sources;  // a text file is one document, a line of JSON is one
  std::string prefix;
  std::string sentencepiece;  // a tokenizer model; empty: bytes are tokens
  bool json_lines = false;    // whatever the names of the sources end in
  std::string key = "text";   // of a line of JSON
  bool append_end = false;    // a token for the end of each document
  int threads = 1;
  std::size_t block_bytes = 1 << 20;  // how much a thread takes at a time
};

// Writes both files; they appear whole or not at all, and do not depend on the number of threads. Progress
// goes to standard error. Gives a line that tells what was written. Throws InputError naming the file, and
// the line of JSON, that is wrong, or the target that is there already.
std::string convert_data(const DataConversion& conversion);

}  // namespace penstock::cli
