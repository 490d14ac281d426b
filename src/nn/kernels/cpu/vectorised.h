// SPDX-License-Identifier: Apache-2.0
// Loops compiled for several widths of vector registers; the widest one available is chosen at program start.
#pragma once

// For functions whose body is a plain loop: the compiler generates one version for AVX-512, one for AVX2 and
// one for any x86-64. Loops that sum in vector lanes give bits that depend on the width, so on the processor,
// and on nothing else. Fused multiply-add is off (CMakeLists.txt): it would round the ends of a row
// differently from its middle.
#define PENSTOCK_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
