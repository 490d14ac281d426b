// SPDX-License-Identifier: Apache-2.0
// Loops compiled for several widths of vector registers; the widest one available is chosen at program start.
#pragma once

// On a function whose body is a plain loop: the compiler makes one version for AVX-512, one for AVX2 and one
// for any x86-64. The bits of loops that sum in vector lanes depend on the width, so on the processor, and on
// nothing else. Fused multiply-add is off (CMakeLists.txt): it would round the ends of a row differently from
// its middle.
#define PENSTOCK_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
