# SPDX-License-Identifier: Apache-2.0
# What a program computes on. nn/kernels/cpu and nn/kernels/cuda are twins, which have the functions of nn/kernels/*.h, and so
# are backend/cpu and backend/cuda; a program is linked with one side. Of a GPU's kernels, GPU/ is what only a GPU can do
# and host/ its twin for tests without one.
set(kernels ${CMAKE_SOURCE_DIR}/src/nn/kernels)
set(backend ${CMAKE_SOURCE_DIR}/src/backend)
file(GLOB_RECURSE cpu_kernels CONFIGURE_DEPENDS ${kernels}/cpu/*.cpp)
file(GLOB gpu_kernels CONFIGURE_DEPENDS ${kernels}/cuda/*.cpp)
file(GLOB gpu_on_host CONFIGURE_DEPENDS ${kernels}/cuda/host/*.cpp)
file(GLOB cpu_backend CONFIGURE_DEPENDS ${backend}/cpu/*.cpp)
# A fake GPU has its own device and memory, and the host's copies and clock.
file(GLOB fake_gpu CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/gpu/*.cpp)
foreach(file clock copy copy_lane host_memory)
  list(APPEND fake_gpu ${backend}/cpu/${file}.cpp)
endforeach()

# GCC 12 warns of registers that its own intrinsics leave undefined on purpose.
set(intrinsics ${cpu_kernels})
list(FILTER intrinsics INCLUDE REGEX "/(avx512|amx)_[a-z]*\\.cpp$")
set_source_files_properties(${intrinsics} PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")

# penstock_device(NAME TYPE file...): a library of kernels, or of all that is one device; it calls nn and nn calls it.
function(penstock_device name type)
  add_library(penstock_${name} ${type} ${ARGN})
  target_link_libraries(penstock_${name} PUBLIC penstock_nn)
  target_compile_options(penstock_${name} PRIVATE ${kernel_options})
  penstock_precompile(penstock_${name} penstock_kernel_pch)
endfunction()

penstock_device(on_cpu STATIC ${cpu_kernels} ${cpu_backend})
# How well a kernel's loops are compiled is not to depend on its neighbours.
set_target_properties(penstock_on_cpu PROPERTIES UNITY_BUILD OFF)

penstock_device(gpu_kernels OBJECT ${gpu_kernels})
penstock_device(gpu_on_host OBJECT ${gpu_on_host})
# The GPU's arithmetic on tensors of the host; and all of it on a device of its own, whose tensors LibTorch keeps apart from the
# host's (tests/gpu).
penstock_device(by_gpu STATIC $<TARGET_OBJECTS:penstock_gpu_kernels> $<TARGET_OBJECTS:penstock_gpu_on_host> ${cpu_backend})
add_library(penstock_on_fake_gpu STATIC $<TARGET_OBJECTS:penstock_gpu_kernels> $<TARGET_OBJECTS:penstock_gpu_on_host> ${fake_gpu})
target_include_directories(penstock_on_fake_gpu PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(penstock_on_fake_gpu PUBLIC penstock_nn)
set_target_properties(penstock_gpu_kernels penstock_gpu_on_host penstock_by_gpu penstock_on_fake_gpu PROPERTIES EXCLUDE_FROM_ALL ON)

# Programs compute on the processor unless their property PENSTOCK_DEVICE names another of these libraries.
set(own $<TARGET_PROPERTY:PENSTOCK_DEVICE>)
target_link_libraries(penstock_nn INTERFACE $<IF:$<BOOL:${own}>,${own},penstock_on_cpu>)

# The program for GPUs.
set(PENSTOCK_CUDA_ARCHITECTURES 80-virtual CACHE STRING "Gpus that kernels are compiled for; of a virtual one the driver compiles at the first start")
if(NOT PENSTOCK_CUDA STREQUAL OFF)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # check_language keeps what it did not find, and nvcc may have come since
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER AND EXISTS ${torch_home}/lib/libtorch_cuda.so)
    include(Cuda)
  elseif(NOT PENSTOCK_CUDA STREQUAL AUTO)
    penstock_missing("CUDA's compiler nvcc 13" "the CUDA toolkit of your gpu's driver, with nvcc on PATH or in CUDACXX")
  endif()
endif()
