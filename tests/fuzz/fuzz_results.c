/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's results files: whatever is accepted gives numbers between 0 and 1; a file that is refused
 * leaves no trace. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "eval/box_eval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char truth[] =
    "{\"images\":[{\"id\":1,\"file_name\":\"a\"},{\"id\":2,\"file_name\":\"b\"}],"
    "\"categories\":[{\"id\":1,\"name\":\"x\"},{\"id\":3,\"name\":\"y\"}],"
    "\"annotations\":[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,9,9]},"
    "{\"image_id\":1,\"category_id\":1,\"bbox\":[0,0,50,50],\"iscrowd\":1},"
    "{\"image_id\":2,\"category_id\":1,\"bbox\":[5,5,40,40]},"
    "{\"image_id\":2,\"category_id\":3,\"bbox\":[5,5,0,0]}]}";

static void check(oct_box_eval *e, oct_status st)
{
    oct_box_metrics m;
    double v[13];

    if (st && (e->n_hits || e->images[0].seen || e->images[1].seen)) abort();
    if (oct_box_eval_finish(e, 1, &m)) return; /* for want of memory */
    memcpy(v, &m, sizeof(v));
    for (int i = 0; i < 13; i++)
        if (!(v[i] == -1 || (v[i] >= 0 && v[i] <= 1))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_dataset d = {.ctx = ctx};
    oct_box_eval *e = NULL;

    if (!ctx) return 0;
    oct_ctx_set_memory_limit(ctx, (size_t)256 << 20);
    if (!(d.arena = oct_arena_new(ctx))) abort();
    if (oct_parse_coco(&d, NULL, (oct_bytes){(const uint8_t *)truth, sizeof(truth) - 1})) abort();
    if (oct_box_eval_new(ctx, &d, &e)) abort();
    check(e, oct_box_eval_see_results(e, data, size));
    oct_box_eval_free(e);
    oct_free(ctx, d.items);
    oct_free(ctx, d.categories);
    oct_arena_free(d.arena);
    oct_ctx_free(ctx);
    return 0;
}
