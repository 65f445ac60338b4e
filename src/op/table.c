/* SPDX-License-Identifier: Apache-2.0 */
/* All operators. To add one: op/<name>.c, one line in op/ops.def, one in op/meson.build. */
#include <string.h>

#include "op/op.h"

static const oct_op *const table[] = {
#define OCT_OP(sym) &oct_op_##sym,
#include "op/ops.def"
#undef OCT_OP
};

const oct_op *oct_op_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(table) ? table[i] : NULL;
}

const oct_op *oct_op_find(const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0 && strcmp(oct_op_domain(table[i]), domain) == 0)
            return table[i];
    return NULL;
}
