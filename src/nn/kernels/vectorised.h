// SPDX-License-Identifier: Apache-2.0
// Loops compiled for several widths of vector registers; the widest that the processor has is chosen when the
// program starts.
#pragma once

// On a function whose body is a plain loop: the compiler makes one version for AVX-512, one for AVX2 and one
// for any x86-64. Loops that sum in vector lanes have bits that depend on the width, so on the processor, and
// on nothing else. Fused multiply-add is off (CMakeLists.txt), lest the first and the last elements of a row
// be rounded differently from those between.
#define PENSTOCK_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
