/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a damaged copy of a network.
 *
 *   damage_model                              the kinds of damage
 *   damage_model MODEL.onnx KIND WHERE OUT.onnx
 */
#include <stdio.h>
#include <stdlib.h>

#include <octet/octet.h>

#include "onnx/onnx.h"
#include "quant/quantize.h"
#include "tests/damage.h"

static oct_status work(oct_ctx *ctx, char **argv)
{
    const int kind = damage_find(argv[2]);
    oct_graph *g = NULL, *plain = NULL;
    oct_status st = oct_onnx_load(ctx, argv[1], &g);

    if (!st && kind < 0 && argv[2][0] != '-')
        st = oct_fail(ctx, OCT_ERR_ARG, "no damage '%s'", argv[2]);
    if (!st) st = oct_quantize_normalise(g, &plain);
    if (!st && kind >= 0) st = damage_apply(plain, kind, atof(argv[3]));
    if (!st) st = oct_onnx_save(plain, argv[4], NULL);
    oct_graph_free(plain);
    oct_graph_free(g);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx;
    oct_status st;

    if (argc != 5) {
        for (int i = 0; damage_at(i); i++)
            printf("%-18s %s\n", damage_at(i)->name, damage_at(i)->what);
        return argc == 1 ? 0 : 2;
    }
    ctx = oct_ctx_new(NULL);
    st = work(ctx, argv);
    if (st) (void)fprintf(stderr, "%s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st ? 1 : 0;
}
