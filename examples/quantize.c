/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an INT8 network from a float one and a folder of pictures: quantize IN PICTURES OUT */
#include <octet/octet.h>
#include <stdio.h>

static int show(void *user, const char *what, int64_t done, int64_t total)
{
    (void)user;
    fprintf(stderr, "\r%s %lld of %lld ", what, (long long)done, (long long)total);
    return 0; /* anything else stops the work */
}

/* What became of the network, and which layers stayed float. */
static void report(const oct_quantized *q)
{
    oct_quantize_summary s = {.struct_size = sizeof(s)};
    oct_quantize_layer layer = {.struct_size = sizeof(layer)};

    oct_quantized_summary(q, &s);
    printf("%d of %d layers are INT8, %.1f%% of the multiply-adds; %lld pictures\n",
           s.layers_quantized, s.layers_total, 100 * s.macs_quantized_share, (long long)s.images);
    for (int32_t i = 0; oct_quantized_layer(q, i, &layer); i++)
        if (layer.reason) printf("  %s stays float: %s\n", layer.name, layer.reason);
}

int main(int argc, char **argv)
{
    oct_ctx *ctx;
    oct_graph *g = NULL;
    oct_dataset *pictures = NULL;
    oct_quantized *q = NULL;
    oct_dataset_options data;
    oct_quantize_options o;
    oct_status st;

    if (argc != 4) return 0 < fprintf(stderr, "usage: quantize IN.onnx PICTURES OUT.onnx\n");
    st = (ctx = oct_ctx_new(NULL)) ? OCT_OK : OCT_ERR_MEMORY;
    if (ctx) oct_ctx_set_progress(ctx, show, NULL);
    oct_dataset_options_init(&data);
    data.images = argv[2];
    data.subset_size = 300;
    oct_quantize_options_init(&o); /* target "octet"; "ort", "openvino" ... for other runtimes */
    if (!st) st = oct_onnx_load(ctx, argv[1], &g);
    if (!st) st = oct_dataset_open(ctx, &data, &pictures);
    if (!st) st = oct_quantize(g, pictures, &o, &q);
    if (!st) report(q);
    if (!st) st = oct_onnx_save(oct_quantized_graph(q), argv[3], NULL);
    if (st) fprintf(stderr, "quantize: %s\n", ctx ? oct_ctx_error(ctx) : "no memory");
    oct_quantized_free(q);
    oct_dataset_close(pictures);
    oct_graph_free(g);
    oct_ctx_free(ctx);
    return st != OCT_OK;
}
