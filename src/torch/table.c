/* SPDX-License-Identifier: Apache-2.0 */
/* All ATen operators that octet knows. To add one: a line in torch/aten.def, and its function. */
#include <stdlib.h>
#include <string.h>

#include "torch/aten.h"

// clang-format off
static const oct_aten_row table[] = {
#define OCT_ATEN(target, emit)             {target, oct_aten_##emit, NULL, NULL},
#define OCT_ATEN_VIEW(target, emit, write) {target, oct_aten_##emit, NULL, oct_aten_write_##write},
#define OCT_ATEN_UNARY(target, op)         {target, NULL, &oct_op_##op, NULL},
#include "torch/aten.def"
#undef OCT_ATEN
#undef OCT_ATEN_VIEW
#undef OCT_ATEN_UNARY
};
// clang-format on

static int by_target(const void *key, const void *row)
{
    return strcmp(key, ((const oct_aten_row *)row)->target);
}

const oct_aten_row *oct_aten_find(const char *target)
{
    return bsearch(target, table, OCT_COUNT(table), sizeof(table[0]), by_target);
}

const oct_aten_row *oct_aten_at(size_t i)
{
    return i < OCT_COUNT(table) ? &table[i] : NULL;
}
