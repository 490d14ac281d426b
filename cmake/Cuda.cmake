# SPDX-License-Identifier: Apache-2.0
# penstock-cuda, the program for GPUs: the same as penstock-compute, with a GPU's kernels and memory. LibTorch's wheel brings the
# CUDA runtime; no second one is linked.
enable_language(CUDA)
# penstock_without_cuda(WHAT INSTALL): ends this file; an error where the program was asked for. A macro, whose return is the file's.
macro(penstock_without_cuda what install)
  if(NOT PENSTOCK_CUDA STREQUAL AUTO)
    penstock_missing("${what}" "${install}")
  endif()
  message(STATUS "penstock-cuda is not built: it needs ${what}")
  return()
endmacro()
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)  # LibTorch's wheel is of CUDA 13
  penstock_without_cuda("nvcc 13; ${CMAKE_CUDA_COMPILER} is ${CMAKE_CUDA_COMPILER_VERSION}" "the CUDA toolkit, with nvcc on PATH or in CUDACXX")
endif()
# penstock_gpu_header(TARGET HEADER PACKAGE): from the wheel that ./dev keeps, or wherever the machine has it.
function(penstock_gpu_header target header package)
  file(GLOB kept ${cache_home}/penstock/card/${package}-*/include ${cache_home}/penstock/card/${package}-*/nvidia/*/include)
  find_path(${target}_INCLUDE ${header} HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${kept} ${torch_home}/../nvidia/cudnn/include
                                              ${python_site}/nvidia/cudnn/include ${python_site}/include)
endfunction()
penstock_gpu_header(cudnn cudnn.h nvidia-cudnn-cu13)
penstock_gpu_header(cudnn_frontend cudnn_frontend.h nvidia-cudnn-frontend)
if(NOT cudnn_INCLUDE OR NOT cudnn_frontend_INCLUDE)
  penstock_without_cuda("headers of cuDNN 9 and of its frontend" "python3 -m pip install --no-deps nvidia-cudnn-cu13 nvidia-cudnn-frontend")
endif()
file(GLOB cuda_runtime ${torch_home}/../nvidia/cu13/lib/libcudart.so.13)
file(GLOB gpu_alone CONFIGURE_DEPENDS ${kernels}/cuda/gpu/*.cpp ${backend}/cuda/*.cpp)

# Kernels without LibTorch's headers, whose options nvcc does not know; CMake 3.25 knows no later standard of nvcc's.
# Products and sums are not fused, as on a host.
add_library(penstock_gpu_launch OBJECT ${kernels}/cuda/gpu/launch.cu)
target_include_directories(penstock_gpu_launch PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_include_directories(penstock_gpu_launch SYSTEM PRIVATE ${torch_home}/include)
target_compile_options(penstock_gpu_launch PRIVATE --expt-relaxed-constexpr -fmad=false)
set_target_properties(penstock_gpu_launch PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES "${PENSTOCK_CUDA_ARCHITECTURES}"
                                                      CUDA_RUNTIME_LIBRARY None EXCLUDE_FROM_ALL ON)

# cuDNN's graphs are described in headers, those of a wheel, compiled once, which takes minutes where all is optimised. LibTorch
# has others of their names, so these stay hidden. The library itself is LibTorch's, found when the program runs.
set_source_files_properties(${kernels}/cuda/gpu/cudnn_attention.cpp PROPERTIES
  COMPILE_OPTIONS "-fvisibility=hidden;-O1" COMPILE_DEFINITIONS "NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING;CUDNN_FRONTEND_SKIP_JSON_LIB")
penstock_device(on_gpu STATIC ${gpu_alone} $<TARGET_OBJECTS:penstock_gpu_kernels> $<TARGET_OBJECTS:penstock_gpu_launch>)
target_include_directories(penstock_on_gpu SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${cudnn_INCLUDE} ${cudnn_frontend_INCLUDE})
target_link_libraries(penstock_on_gpu PUBLIC ${torch_home}/lib/libtorch_cuda.so ${torch_home}/lib/libc10_cuda.so ${cuda_runtime})
# Nothing calls libtorch_cuda by name; it registers what LibTorch's functions do on a GPU.
target_link_options(penstock_on_gpu INTERFACE LINKER:--no-as-needed)

add_executable(penstock-cuda ${CMAKE_SOURCE_DIR}/src/cli/main.cpp)
target_link_libraries(penstock-cuda PRIVATE penstock_cli)
set_target_properties(penstock-cuda PROPERTIES PENSTOCK_DEVICE penstock_on_gpu LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None
                                               RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(PENSTOCK_CUDA STREQUAL AUTO)
  set_target_properties(penstock_on_gpu penstock-cuda PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
