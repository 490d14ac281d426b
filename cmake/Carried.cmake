# SPDX-License-Identifier: Apache-2.0
# A build without MPI may be carried to a machine that has LibTorch and a GPU but none of Debian's packages: the one library
# that programs need of them lies beside them.
get_filename_component(real_library ${sentencepiece_LIBRARY} REALPATH)
get_filename_component(library_name ${real_library} NAME)
string(REGEX REPLACE "([.]so[.][0-9]+).*" "\\1" library_name ${library_name})
configure_file(${real_library} ${CMAKE_BINARY_DIR}/${library_name} COPYONLY)
foreach(program penstock penstock-compute penstock-cuda)
  if(TARGET ${program})
    set_property(TARGET ${program} APPEND PROPERTY BUILD_RPATH "$ORIGIN")
  endif()
endforeach()
