// SPDX-License-Identifier: Apache-2.0
// Parts a source: one part is for training, another held out for evaluation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/data/samples.h"
#include "train/data/token_source.h"

namespace penstock::train {

// A source, with its name in messages.
struct Named {
  const TokenSource& source;
  std::string name;  // data.text = "corpus.txt"
  std::string unit;  // of its size, as in counted()
};

// Ends of the training part and of the held-out part.
struct Ends {
  std::int64_t training = 0;
  std::int64_t held_out = 0;
  std::string held_out_by;  // the option that holds it out; empty: none
  bool whole_documents = false;
};

Ends ends_by_fraction(std::int64_t size, double fraction);
Ends ends_by_split(const TokenSource& source, const std::string& split);

// Adds the training part and the held-out part of a source. Throws InputError for one shorter than a sample.
void take_parts(const Named& named, const Ends& ends, const Cut& cut, std::vector<Stretch>& training,
                std::vector<Stretch>& held_out);

}  // namespace penstock::train
