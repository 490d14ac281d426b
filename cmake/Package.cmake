# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts into a folder that can be moved: the programs, the libraries it needs but for those of
# Debian's Open MPI and of the C and C++ run time, its manual, and examples. cmake/package.sh makes an archive of it.

# DT_RPATH, not DT_RUNPATH: it serves the libraries of libraries too, and comes before a site's LD_LIBRARY_PATH.
foreach(program penstock penstock-compute)
  target_link_options(${program} PRIVATE "LINKER:--disable-new-dtags")
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib" INSTALL_REMOVE_ENVIRONMENT_RPATH ON)
endforeach()
install(TARGETS penstock penstock-compute RUNTIME_DEPENDENCY_SET penstock_libraries RUNTIME DESTINATION bin)
# A bundled libstdc++ would be older than the one that a newer system's Open MPI needs; the system's serves both.
install(RUNTIME_DEPENDENCY_SET penstock_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|util|pthread)[.]so" "^lib(stdc[+][+]|gcc_s)[.]so" "^lib(mpi|open-)"
        LIBRARY DESTINATION lib)

install(CODE "
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\")
  file(MAKE_DIRECTORY \"\${share}/man/man1\" \"\${share}/bash-completion/completions\")
  execute_process(COMMAND \"$<TARGET_FILE:penstock>\" man OUTPUT_FILE \"\${share}/man/man1/penstock.1\"
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND \"$<TARGET_FILE:penstock>\" completion bash COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_FILE \"\${share}/bash-completion/completions/penstock\")")

# Files named this-machine were measured on another one; run directories are in runs/ too.
install(DIRECTORY examples plans hardware engines DESTINATION share/penstock FILES_MATCHING
        PATTERN "*.toml" PATTERN "*.csv" PATTERN "*.jsonl" PATTERN "*.sbatch" PATTERN "*.args" PATTERN "*.json"
        PATTERN "*.txt" PATTERN "this-machine.toml" EXCLUDE)
file(GLOB run_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runs/*.toml)
install(FILES ${run_files} DESTINATION share/penstock/runs)

# Licences: of the wheels, as they carry them, and of Debian's packages whose code is in the program or beside it.
set(licences share/doc/penstock/licences)
install(FILES LICENSE DESTINATION .)
file(GLOB wheels ${torch_home}/../*.dist-info/licenses)
foreach(folder ${wheels})
  get_filename_component(wheel ${folder} DIRECTORY)
  get_filename_component(wheel ${wheel} NAME_WLE)
  if(wheel MATCHES "^(torch|nvidia_cuda)")  # a site directory has other packages too
    install(DIRECTORY ${folder}/ DESTINATION ${licences}/${wheel})
  endif()
endforeach()
file(GLOB copyrights /usr/share/doc/libprotobuf-lite*/copyright)
foreach(package libsentencepiece-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev libgomp1)
  list(APPEND copyrights /usr/share/doc/${package}/copyright)
endforeach()
foreach(file ${copyrights})
  get_filename_component(package ${file} DIRECTORY)
  get_filename_component(package ${package} NAME)
  install(FILES ${file} DESTINATION ${licences}/${package} OPTIONAL)
endforeach()
