/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of octet quantize share: a small classifier, pictures, and looking at what was
 * written. */
#ifndef OCT_TESTS_CLI_QUANTIZE_NET_H
#define OCT_TESTS_CLI_QUANTIZE_NET_H

#include "cli/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "unit/detect_net.h"

enum { SIDE = 32, N_PICTURES = 4, N_HIDDEN = 64 };

/* A convolution with a name; weights depend on their place only. */
static inline oct_value *convolution(fixture *f, const char *name, oct_value *x, int64_t in,
                                     int64_t out, float bad)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){out, in, 1, 1});
    char output[64], weight[64];
    oct_tensor *w = NULL;
    oct_value *y;
    oct_node *n;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &w));
    for (int64_t i = 0; i < out * in; i++)
        ((float *)w->data)[i] = (i / in) % 3 == i % in % 3 ? 0.5f : (float)(i % 7) * 0.01f;
    ((float *)w->data)[1] += bad;
    (void)snprintf(output, sizeof(output), "%s_output_0", name);
    (void)snprintf(weight, sizeof(weight), "%s.weight", name);
    assert_non_null(y = oct_value_new(f->g, output, NULL));
    assert_non_null(n = oct_node_new(f->g, NULL, name, &oct_op_conv,
                                     (oct_value *[]){x, oct_value_const(f->g, weight, w)}, 2, &y,
                                     1));
    assert_ok(f->ctx, oct_node_infer(n));
    return y;
}

/* The brightest channel of a picture: /body/a/Conv, /body/b/Conv, and the mean over all pixels. */
static inline void make_color(place *p, const char *file, float bad)
{
    void *state = NULL;
    fixture *f;
    oct_value *x, *axes;
    oct_node *n;
    char path[256];

    assert_int_equal(setup(&state), 0);
    f = state;
    x = picture_input(f, 1, SIDE, SIDE);
    x = convolution(f, "/body/a/Conv", x, 3, N_HIDDEN, 0);
    x = convolution(f, "/body/b/Conv", x, N_HIDDEN, N_HIDDEN, bad);
    x = convolution(f, "/head/Conv", x, N_HIDDEN, 3, 0);
    axes = oct_ints(&f->b, (int64_t[]){2, 3}, 2);
    assert_non_null(n = oct_emit_node(&f->b, &oct_op_reduce_mean, (oct_value *[]){x, axes}, 2, 1));
    assert_ok(f->ctx, oct_node_set_int(n, "keepdims", 0));
    assert_ok(f->ctx, oct_node_infer(n));
    assert_ok(f->ctx, oct_graph_add_output(f->g, n->out[0]));
    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
    assert_int_equal(teardown(&state), 0);
}

/* img/0.png ..: noise in which one channel is brighter, as classes.txt says. */
static inline void make_pictures(place *p)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_image *im = NULL;
    char path[256], classes[256] = "";
    unsigned seed = 1;

    (void)snprintf(path, sizeof(path), "%s/img", p->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    (void)snprintf(path, sizeof(path), "%s/empty", p->dir);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_ok(ctx, oct_image_new(ctx, 40, 30, &im));
    for (int k = 0; k < N_PICTURES; k++) {
        for (int i = 0; i < 40 * 30 * 3; i++) {
            seed = seed * 1103515245u + 12345u;
            oct_image_rgb(im)[i] = (uint8_t)((seed >> 17 & 127u) + (i % 3 == k % 3 ? 100u : 0u));
        }
        (void)snprintf(path, sizeof(path), "%s/img/%d.png", p->dir, k);
        assert_ok(ctx, oct_image_save(ctx, im, path));
        (void)snprintf(classes + strlen(classes), 32, "%d.png %d\n", k, k % 3);
    }
    oct_image_free(im);
    oct_ctx_free(ctx);
    write_file(p, "classes.txt", classes, strlen(classes));
}

static inline int files_setup(void **state)
{
    if (place_setup(state)) return -1;
    make_color(*state, "net.onnx", 0);
    make_pictures(*state);
    return 0;
}

#define QUANTIZE "quantize net.onnx -o out.onnx --images img "

static inline char *contents(place *p, const char *name, size_t *size)
{
    char path[4096], *data;
    long length;
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_non_null(f = fopen(path, "rb"));
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    assert_true((length = ftell(f)) >= 0);
    rewind(f);
    assert_non_null(data = calloc(1, (size_t)length + 1));
    *size = fread(data, 1, (size_t)length, f);
    assert_int_equal(*size, length);
    (void)fclose(f);
    return data;
}

static inline void assert_same_file(place *p, const char *a, const char *b)
{
    size_t size = 0, other = 0;
    char *x = contents(p, a, &size), *y = contents(p, b, &other);

    assert_true(size > 0);
    assert_int_equal(size, other);
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
}

static inline double number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);

    if (!json_is_number(v)) fail_msg("'%s' is not a number", key);
    return json_number_value(v);
}

#endif
