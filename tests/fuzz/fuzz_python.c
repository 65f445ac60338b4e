/* SPDX-License-Identifier: Apache-2.0 */
/* Python configs: what is read prints as a recipe that reads back to the same text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <octet/recipe.h>

#include "base/ctx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(oct_ctx *ctx, oct_recipe *r)
{
    const char *text = NULL, *again = NULL;
    oct_recipe *copy = NULL;

    if (oct_recipe_text(r, &text) || oct_recipe_new(ctx, &copy)) return;
    if (oct_recipe_load_memory(copy, "again", text, strlen(text))) abort();
    if (oct_recipe_text(copy, &again)) abort();
    if (strcmp(text, again) != 0) abort();
    oct_recipe_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_recipe *r = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)64 << 20);
    if (!oct_recipe_new(ctx, &r)) {
        if (oct_recipe_load_memory(r, "fuzz.py", data, size) == OCT_OK)
            check(ctx, r);
        else if (!ctx->error[0])
            abort(); /* a failure has a reason */
    }
    oct_recipe_free(r);
    oct_ctx_free(ctx);
    return 0;
}
