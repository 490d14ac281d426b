// SPDX-License-Identifier: Apache-2.0
// What a refused call says.
#pragma once

#include <string>

namespace penstock {

// The text of the exception of type Error that the body throws; empty when it throws none.
template <class Error, class Body>
std::string failure(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace penstock
