// SPDX-License-Identifier: Apache-2.0
// The parts of a supervised command: a launcher's options, its program, and the words of penstock train.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::cli {

using CommandWords = std::vector<std::string>;

bool is_one_of(std::string_view word, std::span<const std::string_view> list);

// Whether the word is one of these options of mpirun, which are named without their one or two dashes.
bool is_option(std::string_view word, std::span<const std::string_view> names);

// Returns how many values follow an option of mpirun, a word that begins with a dash.
std::size_t values_after(std::string_view option);

// Whether the command's first word is Open MPI's launcher.
bool starts_mpirun(const CommandWords& command);

// Returns the index of the program that mpirun starts, which ends mpirun's own options; the size of the
// command if there is none.
std::size_t program_of_mpirun(const CommandWords& command);

// Returns the index of the word "train" that follows penstock, or else of the first one, since penstock may
// have another name; the size of the command if there is none.
std::size_t train_word(const CommandWords& command);

// Returns the directory in which mpirun is asked to start its program (--wdir); empty: the current one.
std::string directory_asked(const CommandWords& command);

}  // namespace penstock::cli
