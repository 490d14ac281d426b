# SPDX-License-Identifier: Apache-2.0
# The extension module penstock._core, built by pip (pyproject.toml): the pure half and its bindings, and nothing that
# they do not use, so that installing takes a minute or two.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # our own assertions stay on

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
nanobind_build_library(nanobind-static)

# Readers and writers of formats that only the program uses, and its scores of published tables.
set(penstock_unused files/tokenizers/byte_tokenizer files/checksum files/crc32c files/chat_template files/elements files/event_file
                    files/model_weights files/parted_file files/safetensors files/safetensors_header files/tokenizers/normalizer_check files/tokenizers/sentencepiece
                    files/spill_file files/text_blocks files/megatron/ report/mesh/ plan/published/divided_parameters
                    plan/published/fit_parameters plan/published/kwai_ plan/published/least_squares
                    plan/published/offload_split plan/published/reference_fit plan/published/run_memory plan/published/score
                    plan/published/slimpipe_planner plan/published/throughput plan/published/timed_cases)

# penstock_leave_out(VARIABLE): removes a folder's unused sources from the list.
function(penstock_leave_out variable)
  foreach(part ${penstock_unused})
    list(FILTER ${variable} EXCLUDE REGEX "/src/${part}(/|[.]|[a-z_]*[.]cpp$)")
  endforeach()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()

function(penstock_python_module)
  nanobind_add_module(_core NB_STATIC NOMINSIZE ${CMAKE_SOURCE_DIR}/src/python/module.cpp)
  target_link_libraries(_core PRIVATE penstock_python)
  target_link_options(_core PRIVATE LINKER:--gc-sections)
  install(TARGETS _core LIBRARY DESTINATION penstock)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/hardware ${CMAKE_SOURCE_DIR}/engines DESTINATION penstock
          FILES_MATCHING PATTERN "*.toml" PATTERN "*.csv" PATTERN "this-machine.toml" EXCLUDE)
endfunction()
