/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled models with random inputs, and statistics of their times. */
#include "cli/command/measure.h"

#include <stdlib.h>
#include <string.h>

#include "cli/model.h"

/* --- session --- */

/*
 * A network whose inner shapes have 1 for the batch may still run, with the pictures mixed up: the
 * shapes of its outputs show it.
 */
static bool outputs_follow(const oct_graph *g, int64_t batch)
{
    for (int32_t i = 0; i < oct_graph_n_outputs(g); i++) {
        const oct_value *v = oct_graph_output(g, i);

        if (batch > 1 && oct_value_rank(v) > 1 && oct_value_dim(v, 0) == 1) return false;
    }
    return true;
}

/* Sets the first dimension of the inputs where it is open or 1. */
static oct_status bind_batch(cli *c, oct_graph *g, const char *path, int64_t batch)
{
    static const char advice[] = "this model works with its own batch size only, leave --batch out";

    for (int32_t i = 0; batch && i < oct_graph_n_inputs(g); i++) {
        const oct_value *v = oct_graph_input(g, i);
        const int32_t rank = oct_value_rank(v);
        int64_t dims[OCT_MAX_RANK];
        oct_status st;

        if (rank < 1 || oct_value_dim(v, 0) > 1) continue;
        for (int32_t k = 0; k < rank; k++)
            dims[k] = oct_value_dim(v, k);
        dims[0] = batch;
        if ((st = oct_graph_set_input_shape(g, oct_value_name(v), rank, dims)))
            return cli_fail(c, st, "%s: %s; %s", path, oct_ctx_error(c->ctx), advice);
    }
    if (!outputs_follow(g, batch))
        return cli_fail(c, OCT_ERR_SHAPE, "%s: its outputs stay single; %s", path, advice);
    return OCT_OK;
}

/* Open dimensions become 1, which is rarely what should be measured (except for the batch). */
static void warn_open_dims(const cli *c, const oct_graph *g)
{
    char shape[CLI_SHAPE_SIZE];

    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++) {
        const oct_value *v = oct_graph_input(g, i);
        bool open = oct_value_rank(v) < 0;

        for (int32_t k = 1; k < oct_value_rank(v); k++)
            open = open || oct_value_dim(v, k) < 0;
        if (open)
            cli_note(c,
                     "note: input '%s' has the open shape %s; open dimensions are taken as 1, "
                     "--input-shape sets them",
                     oct_value_name(v), cli_shape_text(v, shape));
    }
}

/* Open sizes become those of the pictures. */
static oct_status bind_pictures(oct_graph *g, const cli_session_options *o, cli_session *s)
{
    const oct_value *v = oct_graph_input(g, 0);
    oct_status st;

    if (!o->pictures) return OCT_OK;
    if ((st = oct_graph_preprocess(g, o->family, o->words, &s->preprocess))) return st;
    s->batch = oct_value_dim(v, 0) > 0 ? oct_value_dim(v, 0) : 1;
    return cli_model_fit_pictures(g, &s->preprocess, s->batch);
}

oct_status cli_session_open(cli *c, const char *path, const cli_session_options *o,
                            cli_session *out)
{
    cli_session s = {.n_threads = o->n_threads ? o->n_threads : oct_ctx_threads(c->ctx)};
    oct_graph *g = NULL;
    oct_plan_options po;
    int64_t start = cli_time_ns();
    oct_status st;

    oct_plan_options_init(&po);
    po.n_threads = s.n_threads;
    if ((st = cli_model_load(c, path, o->shapes, &g))) goto done;
    if ((st = cli_model_drop_unknown(c, g))) goto done;
    if ((st = bind_batch(c, g, path, o->batch))) goto done;
    if ((st = bind_pictures(g, o, &s))) goto done;
    s.load_ms = (double)(cli_time_ns() - start) * 1e-6;
    warn_open_dims(c, g);
    s.input_types = cli_alloc((size_t)oct_graph_n_inputs(g), sizeof(*s.input_types));
    for (int32_t i = 0; i < oct_graph_n_inputs(g); i++)
        s.input_types[i] = oct_value_dtype(oct_graph_input(g, i));
    start = cli_time_ns();
    if ((st = oct_plan_new(g, &po, &s.plan))) goto done;
    s.plan_ms = (double)(cli_time_ns() - start) * 1e-6;
done:
    oct_graph_free(g);
    if (st)
        free(s.input_types);
    else
        *out = s;
    return st;
}

void cli_session_close(cli_session *s)
{
    oct_plan_free(s->plan);
    free(s->input_types);
}

/* --- random inputs --- */

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void put_integer(void *at, size_t width, uint64_t v)
{
    memcpy(at, &v, width); /* little-endian, as every machine octet runs on */
}

/* One element; wide integers stay 0 or 1, since they index things in most networks. */
static void put_element(oct_dtype t, void *at, size_t width, uint64_t r)
{
    const float f = (float)(r >> 40) * 0x1p-24f;
    uint32_t bits;

    switch (t) {
    case OCT_DTYPE_F32:
        memcpy(at, &f, sizeof(f));
        break;
    case OCT_DTYPE_F64:
        memcpy(at, &(double){(double)f}, sizeof(double));
        break;
    case OCT_DTYPE_BF16:
        memcpy(&bits, &f, sizeof(bits));
        put_integer(at, width, bits >> 16);
        break;
    case OCT_DTYPE_F16: /* 0.5 to 1 */
        put_integer(at, width, 0x3800 | (r >> 54));
        break;
    case OCT_DTYPE_U8:
        put_integer(at, width, r >> 56);
        break;
    case OCT_DTYPE_I8:
        put_integer(at, width, r >> 57);
        break;
    default:
        put_integer(at, width, r >> 63);
        break;
    }
}

static size_t element_size(oct_dtype t)
{
    switch (t) {
    case OCT_DTYPE_F64:
    case OCT_DTYPE_I64:
    case OCT_DTYPE_U64:
        return 8;
    case OCT_DTYPE_F32:
    case OCT_DTYPE_I32:
    case OCT_DTYPE_U32:
        return 4;
    case OCT_DTYPE_F16:
    case OCT_DTYPE_BF16:
    case OCT_DTYPE_I16:
    case OCT_DTYPE_U16:
        return 2;
    case OCT_DTYPE_U8:
    case OCT_DTYPE_I8:
    case OCT_DTYPE_BOOL:
        return 1;
    default:
        return 0; /* stays zero */
    }
}

oct_status cli_session_fill(const cli_session *s, oct_run *r, uint64_t seed)
{
    for (int32_t i = 0; i < oct_plan_n_inputs(s->plan); i++) {
        const size_t width = element_size(s->input_types[i]);
        uint64_t state = seed * 1000003u + (uint64_t)i;
        void *data = NULL;
        size_t size = 0;
        const oct_status st = oct_run_input(r, oct_plan_input_name(s->plan, i), &data, &size);

        if (st) return st;
        for (size_t at = 0; width && at + width <= size; at += width)
            put_element(s->input_types[i], (char *)data + at, width, next_random(&state));
    }
    return OCT_OK;
}

/* --- times --- */

void cli_times_add(cli_times *t, int64_t ns)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->ns = cli_realloc(t->ns, t->cap, sizeof(*t->ns));
    }
    t->ns[t->n++] = ns;
}

void cli_times_fini(cli_times *t)
{
    free(t->ns);
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Between the two nearest times, as NumPy's percentile does. */
static double percentile_ms(const cli_times *t, double p)
{
    const double at = p * (double)(t->n - 1);
    const size_t i = (size_t)at, k = i + 1 < t->n ? i + 1 : i;

    return ((double)t->ns[i] + (at - (double)i) * (double)(t->ns[k] - t->ns[i])) * 1e-6;
}

cli_time_stats cli_times_stats(cli_times *t)
{
    cli_time_stats s = {0};
    double sum = 0;

    if (t->n == 0) return s;
    qsort(t->ns, t->n, sizeof(*t->ns), by_time);
    for (size_t i = 0; i < t->n; i++)
        sum += (double)t->ns[i];
    s.mean_ms = sum / (double)t->n * 1e-6;
    s.min_ms = (double)t->ns[0] * 1e-6;
    s.median_ms = percentile_ms(t, 0.5);
    s.p10_ms = percentile_ms(t, 0.1);
    s.p90_ms = percentile_ms(t, 0.9);
    s.p99_ms = percentile_ms(t, 0.99);
    return s;
}

/* Not getrusage(): that also counts memory from before exec(). */
double cli_peak_rss_mb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long long kb = 0;

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0) kb = strtoll(line + 6, NULL, 10);
    if (f) (void)fclose(f);
    return (double)kb * 1024 * 1e-6;
}
