/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures are made into for a network: what its family wants, what its input says. */
#include "detect/input_preprocess.h"

#include <stdio.h>
#include <string.h>

#include "detect/detector.h"
#include "detect/family.h"

/* Size, layout and colours of the input of a network that no family knows. */
static oct_status read_input(const oct_graph *g, const oct_preprocess *asked, oct_preprocess *p)
{
    oct_graph *bound = NULL;
    oct_net net;
    const oct_status st = oct_net_init(&net, g, asked, &bound);

    if (!st) {
        p->width = net.width;
        p->height = net.height;
        p->layout = net.is_nhwc ? OCT_IMAGE_NHWC : OCT_IMAGE_NCHW;
        if (net.input->type.dim[net.is_nhwc ? 3 : 1] == 1) p->color = OCT_COLOR_GRAY;
    }
    oct_graph_free(bound);
    return st;
}

/* "1x3x480x640": the input's shape with the size of the pictures. */
static void put_shape(const oct_type *t, const oct_preprocess *p, char *text, size_t size)
{
    const bool last = p->layout == OCT_IMAGE_NHWC;
    const int colors = t->dim[last ? 3 : 1] == 1 ? 1 : 3;
    const long long batch = t->dim[0] > 0 ? (long long)t->dim[0] : 1;

    (void)snprintf(text, size, "%lldx%dx%dx%d", batch, last ? (int)p->height : colors,
                   last ? (int)p->width : (int)p->height, last ? colors : (int)p->width);
}

oct_status oct_picture_check(const oct_graph *g, const oct_preprocess *p)
{
    const oct_value *v = NULL;
    const bool last = p->layout == OCT_IMAGE_NHWC;
    int64_t height, width;
    char shape[80];

    OCT_TRY(oct_detector_input(g, &v));
    height = v->type.dim[last ? 1 : 2];
    width = v->type.dim[last ? 2 : 3];
    if ((height < 0 || height == p->height) && (width < 0 || width == p->width)) return OCT_OK;
    put_shape(&v->type, p, shape, sizeof(shape));
    return oct_fail(g->ctx, OCT_ERR_ARG,
                    "pictures of %dx%d do not fit input '%s', which is fixed at %lldx%lld; leave "
                    "size= out, or make a network of that size first: octet simplify IN.onnx "
                    "OUT.onnx --input-shape %s",
                    (int)p->width, (int)p->height, v->name, (long long)width, (long long)height,
                    shape);
}

oct_status oct_preprocess_note(oct_graph *g, const oct_preprocess *p)
{
    char text[512];

    return oct_graph_set_metadata(g, OCT_METADATA_PREPROCESS,
                                  oct_preprocess_text(p, text, sizeof(text)));
}

/* Is size= among the words? */
static bool gives_size(const char *words)
{
    const char *w = words;

    while (w && *w) {
        w += strspn(w, ", \n");
        if (strncmp(w, "size=", 5) == 0) return true;
        w = strchr(w, ',');
    }
    return false;
}

oct_status oct_graph_preprocess(const oct_graph *g, const char *family, const char *words,
                                oct_preprocess *p)
{
    OCT_ENTER(g->ctx);
    const bool is_named = family && strcmp(family, "auto") != 0;
    const oct_preprocess *sized = NULL;
    oct_detector *d = NULL;
    oct_preprocess asked;
    oct_status st;

    oct_preprocess_init(p);
    if (gives_size(words)) {
        oct_preprocess_init(&asked);
        OCT_TRY(oct_preprocess_parse(g->ctx, &asked, words));
        sized = &asked;
    }
    st = oct_detector_new_sized(g, family, sized, &d);
    if (!st)
        oct_detector_preprocess(d, p);
    else if (st == OCT_ERR_MEMORY || is_named || !words)
        return st;
    else
        OCT_TRY(read_input(g, sized, p));
    oct_detector_free(d);
    if (words) OCT_TRY(oct_preprocess_parse(g->ctx, p, words));
    return oct_picture_check(g, p);
}
