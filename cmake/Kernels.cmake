# SPDX-License-Identifier: Apache-2.0
# The kernels of src/nn are twins: nn/kernels/cpu and nn/kernels/cuda have the functions of nn/kernels/*.h, and a program is
# linked with one of them. Of the latter, card/ is what only a card can do and host/ its twin for tests on a host.
set(kernels ${CMAKE_SOURCE_DIR}/src/nn/kernels)

# penstock_kernels(NAME file...): one of the twins; it calls nn and nn calls it.
function(penstock_kernels name)
  add_library(penstock_${name} STATIC ${ARGN})
  target_link_libraries(penstock_${name} PUBLIC penstock_nn)
  target_compile_options(penstock_${name} PRIVATE ${kernel_options})
  penstock_precompile(penstock_${name} penstock_kernel_pch)
endfunction()

file(GLOB_RECURSE cpu_kernels CONFIGURE_DEPENDS ${kernels}/cpu/*.cpp)
penstock_kernels(cpu_kernels ${cpu_kernels})
# GCC 12 warns of registers that its own intrinsics leave undefined on purpose.
set(intrinsics ${cpu_kernels})
list(FILTER intrinsics INCLUDE REGEX "/(avx512|amx)_[a-z]*\\.cpp$")
set_source_files_properties(${intrinsics} PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")

file(GLOB card_kernels CONFIGURE_DEPENDS ${kernels}/cuda/*.cpp)
file(GLOB card_on_host CONFIGURE_DEPENDS ${kernels}/cuda/host/*.cpp)
penstock_kernels(card_kernels_on_host ${card_kernels} ${card_on_host})
set_target_properties(penstock_card_kernels_on_host PROPERTIES EXCLUDE_FROM_ALL ON)

# Programs take the processor's kernels unless their property PENSTOCK_KERNELS names others.
set(own $<TARGET_PROPERTY:PENSTOCK_KERNELS>)
target_link_libraries(penstock_nn INTERFACE $<IF:$<BOOL:${own}>,${own},penstock_cpu_kernels>)
