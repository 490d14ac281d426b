# SPDX-License-Identifier: Apache-2.0
# Text files inside a library: penstock_embed(TARGET HEADER NAMESPACE file...) adds a generated source to the target
# that defines NAMESPACE::asset(name), declared in HEADER, over the files' contents. Included, this file defines the
# function; run as a script, it writes the source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(penstock_embed_script ${CMAKE_CURRENT_LIST_FILE})
  function(penstock_embed target header namespace)
    set(source ${CMAKE_BINARY_DIR}/generated/${target}_assets.cpp)
    string(REPLACE ";" "|" files "${ARGN}")
    add_custom_command(OUTPUT ${source} VERBATIM DEPENDS ${ARGN} ${penstock_embed_script}
                       COMMAND ${CMAKE_COMMAND} -D "output=${source}" -D "header=${header}" -D "namespace=${namespace}"
                               -D "files=${files}" -P ${penstock_embed_script})
    target_sources(${target} PRIVATE ${source})
  endfunction()
  return()
endif()

set(text "// Written by cmake/Embed.cmake.\n#include \"${header}\"\n\n#include \"base/error.h\"\n\nnamespace ${namespace} {\n
std::string_view asset(std::string_view name) {\n")
string(REPLACE "|" ";" files "${files}")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" content)
  string(APPEND text "  if (name == \"${name}\") return R\"asset(${content})asset\";\n")
endforeach()
string(APPEND text "  broken_invariant(\"asset exists\", \"every asset that is asked for is embedded\", __FILE__, __LINE__);\n}\n
}  // namespace ${namespace}\n")
file(WRITE "${output}" "${text}")
