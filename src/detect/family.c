/* SPDX-License-Identifier: Apache-2.0 */
/* The table of families. */
#include "detect/family.h"

#include <string.h>

// clang-format off
#define OCT_FAMILY(sym) extern const oct_family oct_family_##sym;
#include "detect/families.def"
#undef OCT_FAMILY

static const oct_family *const table[] = {
#define OCT_FAMILY(sym) &oct_family_##sym,
#include "detect/families.def"
#undef OCT_FAMILY
};
// clang-format on

const oct_family *oct_family_at(int32_t i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(table) ? table[i] : NULL;
}

const oct_family *oct_family_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

const char *oct_family_name(int32_t i)
{
    const oct_family *f = oct_family_at(i);

    return f ? f->name : NULL;
}

const char *oct_family_help(const char *name)
{
    const oct_family *f = name ? oct_family_find(name) : NULL;

    return f ? f->help : NULL;
}
