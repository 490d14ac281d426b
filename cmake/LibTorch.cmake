# SPDX-License-Identifier: Apache-2.0
# LibTorch from the pip wheel, linked directly: find_package(Torch) would demand a CUDA toolkit. Looked for in
# PENSTOCK_TORCH (a site directory that holds torch/), then in the cache that ./dev keeps, then in python3's packages.
set(PENSTOCK_TORCH_VERSION 2.11.0)

set(cache_home $ENV{XDG_CACHE_HOME})
if(NOT cache_home)
  set(cache_home $ENV{HOME}/.cache)
endif()
set(PENSTOCK_TORCH "" CACHE PATH "Directory that holds torch/ of the wheel torch==${PENSTOCK_TORCH_VERSION}")

set(torch_candidates ${PENSTOCK_TORCH} ${cache_home}/penstock/torch-${PENSTOCK_TORCH_VERSION})
execute_process(
  COMMAND python3 -c "import importlib.util,os;s=importlib.util.find_spec('torch');print(os.path.dirname(os.path.dirname(s.origin)) if s else '')"
  OUTPUT_VARIABLE python_site OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
list(APPEND torch_candidates ${python_site})

set(torch_home "")
foreach(candidate ${torch_candidates})
  if(EXISTS ${candidate}/torch/version.py)
    file(STRINGS ${candidate}/torch/version.py version_line REGEX "^__version__")
    if(version_line MATCHES "'${PENSTOCK_TORCH_VERSION}[+']")
      set(torch_home ${candidate}/torch)
      break()
    endif()
  endif()
endforeach()
if(NOT torch_home)
  penstock_missing("LibTorch ${PENSTOCK_TORCH_VERSION}"
    "python3 -m pip install --no-deps --target ${cache_home}/penstock/torch-${PENSTOCK_TORCH_VERSION} torch==${PENSTOCK_TORCH_VERSION} nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85")
endif()
message(STATUS "LibTorch ${PENSTOCK_TORCH_VERSION}: ${torch_home}")

add_library(penstock_libtorch INTERFACE)
target_include_directories(penstock_libtorch SYSTEM INTERFACE ${torch_home}/include)
# Full paths, so that CMake sets the search path of what is built, and replaces it in what is installed.
target_link_libraries(penstock_libtorch INTERFACE ${torch_home}/lib/libtorch_cpu.so ${torch_home}/lib/libc10.so)
# Headers of single operations without those of all two thousand.
target_compile_definitions(penstock_libtorch INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_options(penstock_libtorch INTERFACE
                    # The wheel's libraries find their own CUDA stubs at run time through their own rpath.
                    "LINKER:--allow-shlib-undefined")
# at::parallel_for is a template that runs in parallel only where OpenMP is on; the library is the wheel's own libgomp.
target_compile_options(penstock_libtorch INTERFACE -fopenmp)
target_link_options(penstock_libtorch INTERFACE -fopenmp)
