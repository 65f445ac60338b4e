/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing NumPy's .npy files. */
#include "tensor/npy.h"

#include <stdio.h>
#include <string.h>

/* The magic string and the two bytes of the version. */
#define MAGIC      "\x93NUMPY"
#define MAGIC_SIZE 6
#define ALIGNMENT  64
#define OWN_SPACES 128 /* at the end of a header that octet writes; NumPy's has fewer than 90 */

/* What the header says. */
typedef struct npy_header {
    oct_type type;
    bool big_endian, fortran;
    bool has_descr, has_order, has_shape;
} npy_header;

/* A cursor over the header's text: the display of a Python dictionary. */
typedef struct cursor {
    oct_ctx *ctx;
    const char *p, *end;
} cursor;

static oct_status fail_header(const cursor *c, const char *what)
{
    const int rest = (int)OCT_MIN(c->end - c->p, 20);

    return oct_fail(c->ctx, OCT_ERR_FORMAT, "npy header: %s before \"%.*s\"", what, rest, c->p);
}

static void skip_space(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

/* Takes `ch` if it is the next character after white space. */
static bool take(cursor *c, char ch)
{
    skip_space(c);
    if (c->p == c->end || *c->p != ch) return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t len = strlen(word);

    skip_space(c);
    if ((size_t)(c->end - c->p) < len || memcmp(c->p, word, len) != 0) return false;
    c->p += len;
    return true;
}

/* A short string without escapes; longer ones are cut, which no known word survives. */
static oct_status parse_string(cursor *c, char text[16])
{
    const char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : '\0';
    size_t len = 0;

    if (!quote) return fail_header(c, "a quoted word is missing");
    for (; c->p < c->end && *c->p != quote; c->p++) {
        if (len < 15) text[len++] = *c->p;
    }
    text[len] = '\0';
    if (!take(c, quote)) return fail_header(c, "a quote is not closed");
    return OCT_OK;
}

static oct_status parse_descr(cursor *c, npy_header *h)
{
    char text[16];

    skip_space(c);
    if (c->p < c->end && *c->p == '[')
        return oct_fail(c->ctx, OCT_ERR_UNSUPPORTED, "npy header: arrays of records are not read");
    OCT_TRY(parse_string(c, text));
    h->big_endian = text[0] == '>';
    for (int t = OCT_DTYPE_F32; t <= OCT_DTYPE_I2; t++) {
        const char *npy = oct_dtype_get((oct_dtype)t)->npy;

        /* The first character is the order of bytes: '<', '>', or '=', '|' for "does not matter" */
        if (npy && text[0] && strchr("<>=|", text[0]) && !strcmp(npy + 1, text + 1)) {
            h->type.dtype = (oct_dtype)t;
            return OCT_OK;
        }
    }
    return oct_fail(c->ctx, OCT_ERR_UNSUPPORTED, "npy header: elements of type \"%s\" are not read",
                    text);
}

static oct_status parse_dim(cursor *c, int64_t *dim)
{
    int64_t v = 0;
    bool any = false;

    skip_space(c);
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++) {
        if (!oct_mul_i64(v, 10, &v) || !oct_add_i64(v, *c->p - '0', &v))
            return fail_header(c, "a dimension is too large");
        any = true;
    }
    if (!any) return fail_header(c, "a dimension is missing");
    take(c, 'L'); /* Python 2 wrote long integers so */
    *dim = v;
    return OCT_OK;
}

static oct_status parse_shape(cursor *c, npy_header *h)
{
    h->type.rank = 0;
    if (!take(c, '(')) return fail_header(c, "a shape is missing");
    while (!take(c, ')')) {
        if (h->type.rank == OCT_MAX_RANK) {
            return oct_fail(c->ctx, OCT_ERR_UNSUPPORTED,
                            "npy header: arrays of more than %d dimensions are not read",
                            OCT_MAX_RANK);
        }
        OCT_TRY(parse_dim(c, &h->type.dim[h->type.rank++]));
        if (take(c, ',')) continue;
        if (!take(c, ')')) return fail_header(c, "a shape is not closed");
        break;
    }
    return OCT_OK;
}

static oct_status parse_entry(cursor *c, npy_header *h)
{
    char key[16];

    OCT_TRY(parse_string(c, key));
    if (!take(c, ':')) return fail_header(c, "a colon is missing");
    if (!strcmp(key, "descr")) {
        h->has_descr = true;
        return parse_descr(c, h);
    }
    if (!strcmp(key, "shape")) {
        h->has_shape = true;
        return parse_shape(c, h);
    }
    if (!strcmp(key, "fortran_order")) {
        h->has_order = true;
        h->fortran = take_word(c, "True");
        if (h->fortran || take_word(c, "False")) return OCT_OK;
        return fail_header(c, "True or False is missing");
    }
    return oct_fail(c->ctx, OCT_ERR_FORMAT, "npy header: unknown key \"%s\"", key);
}

static oct_status parse_header(oct_ctx *ctx, const char *text, size_t len, npy_header *h)
{
    cursor c = {ctx, text, text + len};

    *h = (npy_header){.type = {.dtype = OCT_DTYPE_NONE}};
    if (!take(&c, '{')) return fail_header(&c, "a brace is missing");
    while (!take(&c, '}')) {
        OCT_TRY(parse_entry(&c, h));
        if (take(&c, ',')) continue;
        if (!take(&c, '}')) return fail_header(&c, "a brace is not closed");
        break;
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return oct_fail(ctx, OCT_ERR_FORMAT,
                        "npy header: descr, fortran_order or shape is missing");
    return OCT_OK;
}

/* Finds the header's text and, behind it, the first byte of the data. */
static oct_status find_header(oct_ctx *ctx, const uint8_t *data, size_t size, const char **text,
                              size_t *len)
{
    size_t start = 10, n;

    if (size < start || memcmp(data, MAGIC, MAGIC_SIZE) != 0)
        return oct_fail(ctx, OCT_ERR_FORMAT, "not a .npy file");
    n = (size_t)data[8] | (size_t)data[9] << 8;
    if (data[6] < 1 || data[6] > 3)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "npy version %d is not read", data[6]);
    if (data[6] > 1) { /* the length has four bytes */
        start = 12;
        if (size < start) return oct_fail(ctx, OCT_ERR_FORMAT, "npy header is cut off");
        n |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    }
    if (n > size - start) return oct_fail(ctx, OCT_ERR_FORMAT, "npy header is cut off");
    *text = (const char *)data + start;
    *len = n;
    return OCT_OK;
}

/* Turns the bytes of each number around; a complex element is two numbers. */
static void swap_bytes(uint8_t *p, size_t size, size_t number_size)
{
    for (size_t i = 0; i < size; i += number_size) {
        for (size_t a = 0, b = number_size - 1; a < b; a++, b--) {
            const uint8_t t = p[i + a];

            p[i + a] = p[i + b];
            p[i + b] = t;
        }
    }
}

/* From the first index fastest to the last index fastest. */
static void from_fortran(const oct_type *type, const uint8_t *src, uint8_t *dst, size_t elem_size)
{
    const int64_t n = oct_type_len(type);
    int64_t index[OCT_MAX_RANK] = {0}, stride[OCT_MAX_RANK], from = 0;

    for (int i = 0; i < type->rank; i++)
        stride[i] = i ? stride[i - 1] * type->dim[i - 1] : 1;
    for (int64_t k = 0; k < n; k++) {
        memcpy(dst + (size_t)k * elem_size, src + (size_t)from * elem_size, elem_size);
        for (int i = type->rank - 1; i >= 0; i--) {
            from += stride[i];
            if (++index[i] < type->dim[i]) break;
            from -= stride[i] * type->dim[i];
            index[i] = 0;
        }
    }
}

oct_status oct_npy_decode(oct_ctx *ctx, const uint8_t *data, size_t size, oct_tensor **out)
{
    npy_header h;
    const char *text = NULL;
    const uint8_t *bytes;
    oct_tensor *t = NULL;
    size_t len = 0, need, elem_size;

    OCT_TRY(find_header(ctx, data, size, &text, &len));
    OCT_TRY(parse_header(ctx, text, len, &h));
    bytes = (const uint8_t *)text + len;
    size -= (size_t)(bytes - data);
    if (!oct_type_bytes(&h.type, &need) || need > size) {
        char type_text[OCT_TYPE_TEXT_SIZE];

        return oct_fail(ctx, OCT_ERR_FORMAT, "npy data is cut off: %s does not fit in %zu bytes",
                        oct_type_text(&h.type, type_text), size);
    }
    OCT_TRY(oct_tensor_make(ctx, &h.type, &t));
    elem_size = oct_dtype_size(h.type.dtype);
    if (h.fortran && h.type.rank > 1)
        from_fortran(&h.type, bytes, t->data, elem_size);
    else if (need)
        memcpy(t->data, bytes, need);
    if (h.big_endian) {
        const bool complex = oct_dtype_get(h.type.dtype)->kind == OCT_DKIND_OTHER;

        swap_bytes(t->data, need, complex ? elem_size / 2 : elem_size);
    }
    if (h.type.dtype == OCT_DTYPE_BOOL) { /* kernels count on 0 and 1 */
        for (size_t i = 0; i < need; i++)
            ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
    }
    *out = t;
    return OCT_OK;
}

oct_status oct_npy_peek(oct_ctx *ctx, const uint8_t *data, size_t size, oct_type *out)
{
    npy_header h;
    const char *text = NULL;
    size_t len = 0;

    OCT_TRY(find_header(ctx, data, size, &text, &len));
    OCT_TRY(parse_header(ctx, text, len, &h));
    *out = h.type;
    return OCT_OK;
}

oct_status oct_tensor_load_npy(oct_ctx *ctx, const char *path, oct_tensor **out)
{
    OCT_ENTER(ctx);
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, path, &f));
    st = oct_npy_decode(ctx, oct_file_data(f), oct_file_size(f), out);
    oct_file_unref(f);
    return st ? oct_fail_at(ctx, st, path) : OCT_OK;
}

/* "(2, 3)", "(2,)", "()": a tuple of one keeps its comma. */
static void shape_text(const oct_type *type, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");

    for (int i = 0; i < type->rank; i++) {
        used += (size_t)snprintf(text + used, size - used, "%lld,%s", (long long)type->dim[i],
                                 i + 1 < type->rank ? " " : "");
    }
    if (type->rank > 1) used--; /* the last comma */
    snprintf(text + used, size - used, ")");
}

static oct_status put_array(oct_writer *w, const oct_tensor *t)
{
    char header[512], shape[256];
    uint8_t magic[10] = MAGIC "\x01";
    size_t len, padded;

    shape_text(&t->type, shape, sizeof(shape));
    len = (size_t)snprintf(header, sizeof(header),
                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                           oct_dtype_get(t->type.dtype)->npy, shape);
    /* Spaces and a newline, so that the data is aligned; many, so that octet knows its own files.
     */
    padded = (len + OWN_SPACES + 1 + sizeof(magic) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT -
             sizeof(magic);
    memset(header + len, ' ', padded - len);
    header[padded - 1] = '\n';
    magic[8] = (uint8_t)(padded & 0xff);
    magic[9] = (uint8_t)(padded >> 8);

    OCT_TRY(oct_writer_put(w, magic, sizeof(magic)));
    OCT_TRY(oct_writer_put(w, header, padded));
    return oct_writer_put(w, t->data, t->size);
}

oct_status oct_tensor_save_npy(oct_ctx *ctx, const oct_tensor *t, const char *path)
{
    OCT_ENTER(ctx);
    oct_tensor *converted = NULL;
    oct_writer *w = NULL;
    oct_status st;

    if (!oct_dtype_get(t->type.dtype)->npy) {
        st = oct_tensor_cast(ctx, t, OCT_DTYPE_F32, &converted);
        if (st) return oct_fail_at(ctx, st, path);
        t = converted;
    }
    if ((st = oct_writer_open(ctx, path, &w))) goto done;
    if ((st = put_array(w, t))) goto done;
    st = oct_writer_commit(w);
    w = NULL;
done:
    oct_writer_abort(w);
    oct_tensor_unref(converted);
    return st;
}
