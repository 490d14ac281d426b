# SPDX-License-Identifier: Apache-2.0
# What makes builds fast: several files compiled as one, precompiled headers, and ccache and the linker mold where they are
# installed. None of it changes what is built; -DPENSTOCK_UNITY=OFF, -DPENSTOCK_CCACHE=OFF and -DPENSTOCK_MOLD=OFF leave them out.
#
# Most of a file's time is its headers', so files of a folder share them. A name of an unnamed namespace is therefore one thing
# in its folder; tests/layout/unnamed_names_test knows which folders.
option(PENSTOCK_UNITY "Compile several files of a folder as one" ON)
set(CMAKE_UNITY_BUILD ${PENSTOCK_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

#
# A precompiled header costs every file that takes it: pending templates are instantiated at the end of each file
# anew (ATen 1.7 s, CLI11 3.3 s with g++ 12). So only what most files of a target use is in one.
find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE)
  # Precompiled headers need the two sloppy settings; relative paths let several checkouts share a cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${PENSTOCK_CCACHE})
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
find_program(PENSTOCK_MOLD mold)
if(PENSTOCK_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold PENSTOCK_LINKS_WITH_MOLD)  # GCC takes it since version 12.1
endif()
if(PENSTOCK_LINKS_WITH_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# GCC collects garbage whenever its memory has grown by 30 to 100 %. Collecting later takes 0.1 to 0.3 GB more per job and about a
# tenth less time.
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR memory_of_job "${memory_mib} / ${jobs}")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND memory_of_job GREATER 3000)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1000000 --param ggc-min-expand=300>")
endif()

set(penstock_standard_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <deque> <filesystem> <functional>
                              <map> <memory> <numeric> <optional> <set> <span> <sstream> <string> <string_view> <thread>
                              <tuple> <utility> <variant> <vector>)
set(penstock_tensor_headers <ATen/core/Tensor.h> <ATen/ops/empty.h> <ATen/ops/empty_like.h> <ATen/ops/zeros.h>
                            <ATen/Parallel.h>)

# penstock_precompiled(NAME LIBRARIES target... HEADERS header...): headers compiled once, for targets that are built
# with the same options; they take them by penstock_precompile(TARGET NAME).
function(penstock_precompiled name)
  cmake_parse_arguments(PCH "" "" "LIBRARIES;HEADERS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/generated/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "// A precompiled header belongs to a target, and a target needs a source.\n")
  endif()
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE penstock_settings ${PCH_LIBRARIES})
  target_precompile_headers(${name} PRIVATE ${penstock_standard_headers} ${PCH_HEADERS})
endfunction()

function(penstock_precompile target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()
