/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a report: what the float and the INT8 network find, drawn side by side. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report.h"

enum {
    MAX_TRIES = 24, /* pictures on which something might be found */
    MAX_FOUND = 100,
    MAX_SIDE = 640, /* pixels: a report is to be sent around */
};

#define SCORE 0.3f
#define IOU   0.65f

/* A network that looks at pictures. */
typedef struct looker {
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
}

/* OCT_ERR_STATE: there is nothing to draw, which is no failure. */
static oct_status looker_init(looker *l, const cli_report *in, const oct_graph *g)
{
    const oct_value *input = oct_graph_n_inputs(g) ? oct_graph_input(g, 0) : NULL;
    oct_status st;

    if (!input || oct_detector_new(g, in->family, &l->detector)) return OCT_ERR_STATE;
    if (oct_detector_is_classifier(l->detector)) return OCT_ERR_STATE;
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

/* The library writes pictures to files only. */
static oct_status encode(cli *c, const oct_image *im, const void **data, size_t *size)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = cli_format("%s/octet-XXXXXX", tmp && *tmp ? tmp : "/tmp"), *path;
    oct_status st;

    if (!mkdtemp(dir)) {
        st = cli_fail(c, OCT_ERR_IO, "%s: cannot make this folder", dir);
        free(dir);
        return st;
    }
    path = cli_format("%s/picture.jpg", dir);
    st = oct_image_save(c->ctx, im, path);
    if (!st) st = read_file(c, path, data, size);
    (void)unlink(path);
    (void)rmdir(dir);
    free(path);
    free(dir);
    return st;
}

/* Names of the classes: the labels' if they fit, COCO's 80, or numbers. */
typedef struct names {
    const char **list; /* NULL: COCO's */
    int32_t n;
} names;

static void names_init(names *n, const cli_report *in, const looker *l)
{
    const int32_t n_classes = oct_detector_n_classes(l->detector);
    const int32_t n_labels = in->truth ? oct_dataset_n_categories(in->truth) : 0;

    *n = (names){0};
    if (n_labels != n_classes && n_classes == 80) return;
    n->n = n_labels == n_classes && n_labels ? n_labels : 1;
    n->list = cli_alloc((size_t)n->n, sizeof(*n->list));
    n->list[0] = "";
    for (int32_t i = 0; n_labels == n_classes && i < n_labels; i++)
        n->list[i] = oct_dataset_category_name(in->truth, i);
}

static oct_status draw_one(const cli_report *in, const looker *l, const oct_image *im,
                           const names *n, const void **data, size_t *size)
{
    oct_detection found[MAX_FOUND];
    oct_image *small = NULL;
    float scale;
    oct_status st = shrink(in->c->ctx, im, &small, &scale);

    for (int32_t i = 0; !st && i < l->n; i++) {
        found[i] = l->found[i];
        found[i].x *= scale;
        found[i].y *= scale;
        found[i].width *= scale;
        found[i].height *= scale;
    }
    if (!st) st = oct_detections_draw(in->c->ctx, small, found, l->n, n->list, n->n);
    if (!st) st = encode(in->c, small, data, size);
    oct_image_free(small);
    return st;
}

static oct_status draw_pair(const cli_report *in, looker both[2], const char *path, const names *n,
                            cli_report_pictures *p)
{
    oct_report_picture *picture = &p->list[p->n];
    const char *slash = strrchr(path, '/');
    oct_image *im = NULL;
    oct_status st = oct_image_load(in->c->ctx, path, NULL, &im);

    for (int i = 0; i < 2 && !st; i++)
        st = look(&both[i], in->c->ctx, im);
    if (!st && (both[0].n || both[1].n)) {
        st = draw_one(in, &both[0], im, n, &picture->float_data, &picture->float_size);
        if (!st) st = draw_one(in, &both[1], im, n, &picture->int8_data, &picture->int8_size);
        picture->name = slash ? slash + 1 : path;
        p->n++; /* what there is of it is freed */
    }
    oct_image_free(im);
    return st;
}

oct_status cli_report_draw(const cli_report *in, cli_report_pictures *p)
{
    const oct_dataset *d = in->truth ? in->truth : in->images;
    const int64_t n = d ? oct_dataset_size(d) : 0, tries = n < MAX_TRIES ? n : MAX_TRIES;
    looker *both = cli_alloc(2, sizeof(*both));
    names labels = {0};
    oct_status st = !d || oct_dataset_is_tensors(d) ? OCT_ERR_STATE : OCT_OK;

    in->c->model = in->float_path;
    if (!st) st = looker_init(&both[0], in, in->exact);
    in->c->model = in->int8_path;
    if (!st) st = looker_init(&both[1], in, in->quantized);
    if (!st) names_init(&labels, in, &both[0]);
    for (int64_t i = 0; !st && i < tries && p->n < CLI_REPORT_PICTURES; i++) {
        st = draw_pair(in, both, oct_dataset_path(d, i * n / tries), &labels, p);
        (void)cli_progress(in->c, "drawing", i + 1, tries);
    }
    cli_progress_end(in->c);
    free(labels.list);
    looker_fini(&both[0]);
    looker_fini(&both[1]);
    free(both);
    return st == OCT_ERR_STATE ? OCT_OK : st;
}

void cli_report_pictures_fini(cli_report_pictures *p)
{
    for (int i = 0; i < p->n; i++) {
        free((void *)p->list[i].float_data);
        free((void *)p->list[i].int8_data);
    }
}
