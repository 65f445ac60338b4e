/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scoring a COCO results file: a list of {image_id, category_id, bbox, score}. Other fields are
 * skipped. Entries of a picture may be anywhere; equal scores keep their order.
 *
 * The file is parsed in place, number by number, since building a tree of every entry would take
 * longer than all of the scoring.
 */
#include "eval/box_eval.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_stream.h"

enum {
    FAST_DIGITS = 15,      /* below 2^53: exact in a double, and so is 10 to their number */
    PROGRESS_EVERY = 8192, /* entries */
};

/* What was read, and which picture each entry belongs to. */
typedef struct results {
    oct_box_eval *e;
    oct_json_stream s;
    const char *begin; /* of the file */
    oct_box_found *items;
    size_t n, cap;
    size_t *start;   /* n_images + 1: where the entries of a picture begin in `order` */
    uint32_t *order; /* entries by picture, in the order of the file */
} results;

/* --- numbers --- */

static bool is_digit(const oct_json_stream *s, const char *p)
{
    return p < s->end && *p >= '0' && *p <= '9';
}

static bool is_number_part(const oct_json_stream *s, const char *p)
{
    return is_digit(s, p) ||
           (p < s->end && (*p == '-' || *p == '+' || *p == '.' || *p == 'e' || *p == 'E'));
}

/*
 * Plain decimals, the usual case in such files: one division of two exact numbers is correctly
 * rounded. False for anything else, right or wrong; nothing is consumed then.
 */
static bool read_plain(oct_json_stream *s, double *out)
{
    static const double power[FAST_DIGITS + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = s->p;
    const bool negative = p < s->end && *p == '-';
    int64_t digits = 0;
    int n = 0, n_behind = 0;

    p += negative;
    if (!is_digit(s, p) || (*p == '0' && is_digit(s, p + 1))) return false;
    for (; is_digit(s, p) && n <= FAST_DIGITS; p++, n++)
        digits = digits * 10 + (*p - '0');
    if (p < s->end && *p == '.') {
        if (!is_digit(s, ++p)) return false;
        for (; is_digit(s, p) && n <= FAST_DIGITS; p++, n++, n_behind++)
            digits = digits * 10 + (*p - '0');
    }
    if (n > FAST_DIGITS || is_number_part(s, p)) return false;
    *out = (double)digits / power[n_behind];
    if (negative) *out = -*out;
    s->p = p;
    return true;
}

static oct_status read_number(oct_json_stream *s, const char *what, double *out)
{
    const char *end;
    json_t *v;

    (void)oct_json_stream_peek(s);
    if (read_plain(s, out)) return OCT_OK;
    for (end = s->p; is_number_part(s, end); end++)
        ;
    v = json_loadb(s->p, (size_t)(end - s->p), JSON_DECODE_ANY, NULL);
    if (!json_is_number(v)) {
        json_decref(v);
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "%s is not a number", what);
    }
    *out = json_number_value(v);
    json_decref(v);
    s->p = end;
    return OCT_OK;
}

static oct_status read_id(oct_json_stream *s, const char *what, int64_t *out)
{
    double v = 0;

    OCT_TRY(read_number(s, what, &v));
    if (v != floor(v) || fabs(v) >= 0x1p53)
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "%s is not a whole number", what);
    *out = (int64_t)v;
    return OCT_OK;
}

static oct_status read_box(oct_json_stream *s, oct_box_found *out)
{
    double v[4] = {0};
    int64_t n = 0;
    bool more = true;

    if (oct_json_stream_enter(s, '['))
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "bbox is not a list of 4 numbers");
    for (;;) {
        OCT_TRY(oct_json_stream_more(s, ']', &n, &more));
        if (!more) break;
        if (n > 4) return oct_fail(s->ctx, OCT_ERR_FORMAT, "bbox is not a list of 4 numbers");
        OCT_TRY(read_number(s, "bbox", &v[n - 1]));
    }
    if (n != 4) return oct_fail(s->ctx, OCT_ERR_FORMAT, "bbox is not a list of 4 numbers");
    if (v[2] < 0 || v[3] < 0)
        return oct_fail(s->ctx, OCT_ERR_FORMAT, "bbox has a negative size: %g x %g", v[2], v[3]);
    out->x = v[0];
    out->y = v[1];
    out->width = v[2];
    out->height = v[3];
    return OCT_OK;
}

/* --- entries --- */

enum { HAS_IMAGE = 1, HAS_CATEGORY = 2, HAS_BOX = 4, HAS_SCORE = 8 };

static oct_status read_fields(oct_json_stream *s, oct_box_found *out, int64_t *image_id,
                              int64_t *category_id, unsigned *has)
{
    char key[OCT_JSON_KEY_SIZE];
    int64_t n = 0;
    bool more = true;

    if (oct_json_stream_peek(s) != '{') return oct_fail(s->ctx, OCT_ERR_FORMAT, "not an object");
    OCT_TRY(oct_json_stream_enter(s, '{'));
    for (;;) {
        OCT_TRY(oct_json_stream_more(s, '}', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_key(s, key));
        if (!strcmp(key, "image_id")) {
            OCT_TRY(read_id(s, key, image_id));
            *has |= HAS_IMAGE;
        } else if (!strcmp(key, "category_id")) {
            OCT_TRY(read_id(s, key, category_id));
            *has |= HAS_CATEGORY;
        } else if (!strcmp(key, "bbox")) {
            OCT_TRY(read_box(s, out));
            *has |= HAS_BOX;
        } else if (!strcmp(key, "score")) {
            OCT_TRY(read_number(s, key, &out->score));
            *has |= HAS_SCORE;
        } else {
            OCT_TRY(oct_json_stream_skip(s));
        }
    }
}

static oct_status read_entry(results *r, oct_box_found *out)
{
    static const char *const names[] = {"image_id", "category_id", "bbox", "score"};
    const oct_box_eval *e = r->e;
    int64_t image_id = 0, category_id = 0, image, category;
    unsigned has = 0;

    OCT_TRY(read_fields(&r->s, out, &image_id, &category_id, &has));
    for (unsigned i = 0; i < OCT_COUNT(names); i++)
        if (!(has & 1u << i)) return oct_fail(e->ctx, OCT_ERR_FORMAT, "there is no %s", names[i]);
    image = oct_box_find_id(e->image_ids, e->n_images, image_id);
    if (image < 0)
        return oct_fail(e->ctx, OCT_ERR_FORMAT, "image_id %lld is not in the annotations",
                        (long long)image_id);
    category = oct_box_find_id(e->category_ids, e->n_categories, category_id);
    if (category < 0)
        return oct_fail(e->ctx, OCT_ERR_FORMAT, "category_id %lld is not in the annotations",
                        (long long)category_id);
    if (e->images[image].seen)
        return oct_fail(e->ctx, OCT_ERR_STATE, "image_id %lld was seen before",
                        (long long)image_id);
    out->image = (uint32_t)image;
    out->category = (int32_t)category;
    return OCT_OK;
}

static oct_status read_all(results *r)
{
    oct_ctx *ctx = r->e->ctx;
    const int64_t size = r->s.end - r->begin;
    int64_t n = 0;
    bool more = true;

    if (oct_json_stream_peek(&r->s) != '[')
        return oct_fail(ctx, OCT_ERR_FORMAT,
                        "not a list of results; COCO's are [{\"image_id\": .., \"category_id\": "
                        ".., \"bbox\": .., "
                        "\"score\": ..}, ..], as octet eval --results writes them");
    OCT_TRY(oct_json_stream_enter(&r->s, '['));
    for (;;) {
        oct_box_found f = {0};
        oct_status st;

        OCT_TRY(oct_json_stream_more(&r->s, ']', &n, &more));
        if (!more) return oct_json_stream_finish(&r->s);
        if ((st = read_entry(r, &f))) {
            char where[48];

            (void)snprintf(where, sizeof(where), "result %lld", (long long)(n - 1));
            return oct_fail_at(ctx, st, where);
        }
        if (n % PROGRESS_EVERY == 0)
            OCT_TRY(oct_progress(ctx, "reading results", r->s.p - r->begin, size));
        if (r->e->images[f.image].left_out) continue;
        if (r->n == UINT32_MAX)
            return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "more than 4,294,967,295 results");
        OCT_TRY(oct_grow(ctx, &r->items, &r->cap, r->n + 1, sizeof(*r->items)));
        r->items[r->n++] = f;
    }
}

/* --- by picture --- */

static oct_status group(results *r)
{
    const size_t n_images = (size_t)r->e->n_images;

    r->start = oct_calloc(r->e->ctx, n_images + 2, sizeof(*r->start));
    r->order = oct_alloc(r->e->ctx, r->n * sizeof(*r->order));
    if (!r->start || !r->order) return OCT_ERR_MEMORY;
    /* Counted two positions ahead, prefix sum one ahead; filling moves them to their final
     * positions. */
    for (size_t k = 0; k < r->n; k++)
        r->start[r->items[k].image + 2]++;
    for (size_t i = 2; i < n_images + 2; i++)
        r->start[i] += r->start[i - 1];
    for (size_t k = 0; k < r->n; k++)
        r->order[r->start[r->items[k].image + 1]++] = (uint32_t)k;
    return OCT_OK;
}

static oct_status match_picture(results *r, int64_t i)
{
    oct_box_eval *e = r->e;
    const size_t first = r->start[i], n = r->start[i + 1] - first;

    if (n == 0) return OCT_OK;
    OCT_TRY(oct_grow(e->ctx, &e->found, &e->found_cap, n, sizeof(*e->found)));
    for (size_t k = 0; k < n; k++)
        e->found[k] = r->items[r->order[first + k]];
    return oct_box_match(e, i, e->found, n);
}

static oct_status match_all(results *r)
{
    oct_box_eval *e = r->e;
    const size_t n_before = e->n_hits;
    oct_status st = OCT_OK;

    for (int64_t i = 0; i < e->n_images && !st; i++)
        st = match_picture(r, i);
    if (!st) return OCT_OK;
    for (int64_t i = 0; i < e->n_images; i++)
        if (r->start[i + 1] > r->start[i]) e->images[i] = (oct_box_image){0};
    e->n_hits = n_before;
    return st;
}

oct_status oct_box_eval_see_results(oct_box_eval *e, const void *data, size_t size)
{
    results r = {.e = e, .begin = data};
    oct_status st;

    oct_json_stream_init(&r.s, e->ctx, data, size);
    st = read_all(&r);
    if (!st) st = group(&r);
    if (!st) st = match_all(&r);
    oct_free(e->ctx, r.items);
    oct_free(e->ctx, r.start);
    oct_free(e->ctx, r.order);
    return st;
}

oct_status oct_box_eval_see_file(oct_box_eval *e, const char *path)
{
    OCT_ENTER(e->ctx);
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(e->ctx, path, &f));
    st = oct_box_eval_see_results(e, oct_file_data(f), oct_file_size(f));
    oct_file_unref(f);
    return st && st != OCT_ERR_CANCELLED ? oct_fail_at(e->ctx, st, path) : st;
}
