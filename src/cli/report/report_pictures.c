/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a report: those where the detections of the float and the INT8 network differ
 * most. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report/report.h"

enum {
    MAX_TRIES = 48, /* pictures that are compared */
    MAX_FOUND = 100,
    MAX_SIDE = 640, /* pixels: a report should be small enough to send */
};

#define SCORE 0.3f
#define IOU   0.65f
#define SAME  0.5f /* boxes of one class that overlap as much are the same thing */

/* A network that is run on pictures. */
typedef struct looker {
    oct_graph *opened; /* with floats for codes; NULL: it has none */
    oct_detector *detector;
    oct_plan *plan;
    oct_run *run;
    oct_preprocess prep;
    oct_dtype dtype;
    void *input;
    oct_detection found[MAX_FOUND];
    int32_t n;
} looker;

static void looker_fini(looker *l)
{
    oct_run_free(l->run);
    oct_plan_free(l->plan);
    oct_detector_free(l->detector);
    oct_graph_free(l->opened);
}

/* OCT_ERR_STATE: there is nothing to draw, which is no failure. */
static oct_status looker_init(looker *l, const cli_report *in, const oct_graph *g)
{
    const oct_value *input;
    oct_status st;

    if ((st = oct_graph_float_io(g, &l->opened))) return st;
    if (l->opened) g = l->opened;
    input = oct_graph_n_inputs(g) ? oct_graph_input(g, 0) : NULL;
    if (!input || oct_detector_new(g, in->family, &l->detector)) return OCT_ERR_STATE;
    if (oct_detector_is_classifier(l->detector)) return OCT_ERR_STATE;
    if (in->names && (st = oct_detector_set_names(l->detector, in->names))) return st;
    oct_preprocess_init(&l->prep);
    oct_detector_preprocess(l->detector, &l->prep);
    if (in->preprocess) l->prep = *in->preprocess;
    l->dtype = oct_value_dtype(input);
    if (l->dtype != OCT_DTYPE_F32 && l->dtype != OCT_DTYPE_U8) return OCT_ERR_STATE;
    if ((st = oct_plan_new(g, NULL, &l->plan))) return st;
    if ((st = oct_run_new(in->c->ctx, l->plan, &l->run))) return st;
    if ((st = oct_run_input(l->run, oct_value_name(input), &l->input, NULL))) return st;
    return l->input ? OCT_OK : OCT_ERR_STATE;
}

static oct_status look(looker *l, oct_ctx *ctx, const oct_image *im)
{
    oct_nms_options o;
    oct_mapping map;
    oct_status st;

    oct_nms_options_init(&o);
    o.score = SCORE;
    o.iou = IOU;
    o.agnostic = 1;
    o.max_detections = MAX_FOUND;
    if ((st = oct_preprocess_run(ctx, &l->prep, im, l->dtype, l->input, &map))) return st;
    if ((st = oct_run_execute(l->run))) return st;
    return oct_detector_decode(l->detector, l->run, 0, &map, &o, l->found, &l->n);
}

/* --- drawing --- */

/* A copy, with its longer side at most MAX_SIDE; *scale is that of its pixels. */
static oct_status shrink(oct_ctx *ctx, const oct_image *im, oct_image **out, float *scale)
{
    const int32_t w = oct_image_width(im), h = oct_image_height(im), side = w > h ? w : h;
    oct_preprocess p;
    oct_status st;

    *scale = side > MAX_SIDE ? (float)MAX_SIDE / (float)side : 1;
    oct_preprocess_init(&p);
    p.width = (int32_t)((float)w * *scale + 0.5f);
    p.height = (int32_t)((float)h * *scale + 0.5f);
    if (p.width < 1) p.width = 1;
    if (p.height < 1) p.height = 1;
    p.fit = OCT_FIT_STRETCH;
    p.layout = OCT_IMAGE_NHWC;
    p.scale = 1;
    if ((st = oct_image_new(ctx, p.width, p.height, out))) return st;
    st = oct_preprocess_run(ctx, &p, im, OCT_DTYPE_U8, oct_image_rgb(*out), NULL);
    if (st) {
        oct_image_free(*out);
        *out = NULL;
    }
    return st;
}

static oct_status read_file(cli *c, const char *path, const void **data, size_t *size)
{
    FILE *f = fopen(path, "rb");
    struct stat sb;
    char *p = NULL;

    if (f && fstat(fileno(f), &sb) == 0 && sb.st_size > 0) {
        p = cli_alloc((size_t)sb.st_size, 1);
        if (fread(p, 1, (size_t)sb.st_size, f) != (size_t)sb.st_size) {
            free(p);
            p = NULL;
        }
    }
    if (f) (void)fclose(f);
    if (!p) return cli_fail(c, OCT_ERR_IO, "%s: cannot read it back", path);
    *data = p;
    *size = (size_t)sb.st_size;
    return OCT_OK;
}

/* A folder for files that live until the pictures are made. */
static char *scratch_new(cli *c)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = cli_format("%s/octet-XXXXXX", tmp && *tmp ? tmp : "/tmp");

    if (mkdtemp(dir)) return dir;
    (void)cli_fail(c, OCT_ERR_IO, "%s: cannot make this folder", dir);
    free(dir);
    return NULL;
}

static char *scratch_path(const char *dir, int i)
{
    return cli_format("%s/%d.jpg", dir, i);
}

/* Files are removed together at the end: a new one could reuse the inode of a removed one and be
 * taken for it. */
static void scratch_free(char *dir, int n)
{
    for (int i = 0; dir && i < n; i++) {
        char *path = scratch_path(dir, i);

        (void)unlink(path);
        free(path);
    }
    if (dir) (void)rmdir(dir);
    free(dir);
}

/* The library writes pictures to files only. */
static oct_status encode(cli *c, const oct_image *im, const char *path, const void **data,
                         size_t *size)
{
    const oct_status st = oct_image_save(c->ctx, im, path);

    return st ? st : read_file(c, path, data, size);
}

/*
 * Names of the classes: the network's own, the labels' if they fit, COCO's 80, or none: the page
 * shows numbers.
 */
static void find_names(const cli_report *in, const looker *l, cli_report_pictures *p)
{
    const int32_t n_classes = oct_detector_n_classes(l->detector);
    const int32_t n_labels = in->truth ? oct_dataset_n_categories(in->truth) : 0;
    const char *from = oct_detector_names_from(l->detector);
    const bool own = from && strcmp(from, "COCO") != 0, fit = n_labels == n_classes && n_labels;

    if (!n_classes || (!from && !fit)) return;
    p->n_names = n_classes;
    p->names = cli_alloc((size_t)n_classes, sizeof(*p->names));
    for (int32_t i = 0; i < n_classes; i++) { /* copied: the page is written later */
        const char *name = fit && !own ? oct_dataset_category_name(in->truth, i)
                                       : oct_detector_class_name(l->detector, i);

        p->names[i] = name ? cli_format("%s", name) : cli_format("%d", (int)i);
    }
}

/* --- which pictures --- */

/* A picture that was compared. */
typedef struct view {
    int64_t index; /* in the dataset */
    double differ; /* how much the networks differ */
    int32_t n[2];
    oct_detection *found[2];
} view;

/* The score of each box that one network alone has, and how far the others moved. */
static double difference(const looker both[2])
{
    int32_t partner[MAX_FOUND];
    double sum = 0;

    for (int32_t k = 0; k < both[1].n; k++)
        sum += (double)both[1].found[k].score;
    oct_detections_match(both[0].found, both[0].n, both[1].found, both[1].n, SAME, partner);
    for (int32_t i = 0; i < both[0].n; i++) {
        const oct_detection *a = &both[0].found[i], *b = &both[1].found[partner[i]];

        if (partner[i] < 0)
            sum += (double)a->score;
        else
            sum += 1 - (double)oct_detections_iou(a, b) - (double)b->score;
    }
    return sum;
}

static oct_status look_at(const cli_report *in, looker both[2], oct_dataset *d, view *v)
{
    oct_image *im = NULL;
    oct_status st = oct_dataset_load(d, v->index, &im);

    if (st) return st == OCT_ERR_MEMORY ? st : OCT_OK; /* a broken one: others will do */
    for (int i = 0; i < 2 && !st; i++)
        st = look(&both[i], in->c->ctx, im);
    for (int i = 0; i < 2 && !st; i++) {
        v->n[i] = both[i].n;
        v->found[i] = cli_alloc((size_t)both[i].n + 1, sizeof(*v->found[i]));
        memcpy(v->found[i], both[i].found, (size_t)both[i].n * sizeof(*v->found[i]));
    }
    if (!st) v->differ = difference(both);
    oct_image_free(im);
    return st;
}

/* Largest difference first; pictures without detections last. */
static int by_difference(const void *a, const void *b)
{
    const view *x = a, *y = b;
    const bool x_empty = !x->n[0] && !x->n[1], y_empty = !y->n[0] && !y->n[1];

    if (x_empty != y_empty) return x_empty - y_empty;
    if (x->differ != y->differ) return x->differ > y->differ ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The picture itself, small, and the boxes in its pixels; these are the scene's from here on. */
static oct_status make_scene(const cli_report *in, oct_dataset *d, const char *scratch, view *v,
                             oct_report_scene *s)
{
    const char *path = oct_dataset_path(d, v->index), *slash = strrchr(path, '/');
    const int64_t frame = oct_dataset_frame(d, v->index);
    oct_image *im = NULL, *small = NULL;
    float scale = 1;
    oct_status st = oct_dataset_load(d, v->index, &im);

    if (!st) st = shrink(in->c->ctx, im, &small, &scale);
    if (!st) st = encode(in->c, small, scratch, &s->data, &s->size);
    if (!st) {
        s->width = oct_image_width(small);
        s->height = oct_image_height(small);
    }
    for (int k = 0; k < 2; k++)
        for (int32_t i = 0; i < v->n[k]; i++) {
            v->found[k][i].x *= scale;
            v->found[k][i].y *= scale;
            v->found[k][i].width *= scale;
            v->found[k][i].height *= scale;
        }
    s->name = frame < 0 ? cli_format("%s", slash ? slash + 1 : path)
                        : cli_format("%s, frame %lld", slash ? slash + 1 : path, (long long)frame);
    s->float_found = v->found[0];
    s->int8_found = v->found[1];
    s->n_float = v->n[0];
    s->n_int8 = v->n[1];
    v->found[0] = v->found[1] = NULL;
    oct_image_free(small);
    oct_image_free(im);
    return st;
}

static oct_status draw_worst(const cli_report *in, oct_dataset *d, view *views, int64_t n,
                             cli_report_pictures *p)
{
    char *dir = scratch_new(in->c);
    oct_status st = dir ? OCT_OK : OCT_ERR_IO;

    for (int64_t i = 0; !st && i < n && p->n < CLI_REPORT_PICTURES; i++) {
        char *scratch = scratch_path(dir, p->n);

        if (views[i].n[0] || views[i].n[1]) {
            st = make_scene(in, d, scratch, &views[i], &p->list[p->n]);
            p->n++; /* what there is of it is freed */
        }
        free(scratch);
    }
    scratch_free(dir, p->n);
    return st;
}

static oct_status make_scenes(const cli_report *in, looker both[2], oct_dataset *d,
                              cli_report_pictures *p)
{
    const int64_t n = oct_dataset_size(d), tries = n < MAX_TRIES ? n : MAX_TRIES;
    view *views = cli_alloc((size_t)tries + 1, sizeof(*views));
    oct_status st = OCT_OK;

    for (int64_t i = 0; !st && i < tries; i++) {
        views[i].index = i * n / tries;
        st = look_at(in, both, d, &views[i]);
        (void)cli_progress(in->c, "comparing what is found", i + 1, tries);
    }
    cli_progress_end(in->c);
    qsort(views, (size_t)tries, sizeof(*views), by_difference);
    if (!st) st = draw_worst(in, d, views, tries, p);
    p->n_seen = (int)tries;
    p->score = SCORE;
    for (int64_t i = 0; i < tries; i++) {
        free(views[i].found[0]);
        free(views[i].found[1]);
    }
    free(views);
    return st;
}

oct_status cli_report_draw(const cli_report *in, cli_report_pictures *p)
{
    oct_dataset *d = in->truth ? in->truth : in->images;
    looker *both = cli_alloc(2, sizeof(*both));
    oct_status st = !d || oct_dataset_is_tensors(d) ? OCT_ERR_STATE : OCT_OK;

    in->c->model = in->float_path;
    if (!st) st = looker_init(&both[0], in, in->exact);
    in->c->model = in->int8_path;
    if (!st) st = looker_init(&both[1], in, in->quantized);
    if (!st) find_names(in, &both[0], p);
    if (!st) st = make_scenes(in, both, d, p);
    looker_fini(&both[0]);
    looker_fini(&both[1]);
    free(both);
    return st == OCT_ERR_STATE ? OCT_OK : st;
}

void cli_report_pictures_fini(cli_report_pictures *p)
{
    for (int i = 0; i < p->n; i++) {
        free((void *)p->list[i].name);
        free((void *)p->list[i].data);
        free((void *)p->list[i].float_found);
        free((void *)p->list[i].int8_found);
    }
    for (int32_t i = 0; i < p->n_names; i++)
        free(p->names[i]);
    free(p->names);
}
