/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that the kernels use on this machine, for users who ask why something is
 * slow. */
#include "base/machine.h"

#include <string.h>

#include <octet/plan.h>

#include "exec/onednn/onednn.h"
#include "exec/simd/int8/simd_int8.h"
#include "exec/simd/simd.h"

enum { QUAD_OF_BYTES = 4 }; /* packed bytes of four weights where 8-bit products are used */

void oct_machine(oct_machine_info *info)
{
    oct_machine_info all = {.struct_size = info->struct_size};

    all.float_set = oct_simd_get()->name;
    all.int8_set = oct_int8_get()->name;
    all.int8_by_16_bits = oct_int8_get()->quad_bytes > QUAD_OF_BYTES;
    all.cores = oct_machine_cores();
    all.memory_bytes = oct_machine_memory();
    oct_dnnl_version(&all.onednn_major, &all.onednn_minor, &all.onednn_patch);
#ifndef _OPENMP
    all.one_thread_loops = 1;
#endif
    memcpy(info, &all, OCT_MIN(all.struct_size, sizeof(all)));
}
