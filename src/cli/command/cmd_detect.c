/* SPDX-License-Identifier: Apache-2.0 */
/* octet detect: finds objects in pictures and draws them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/classes.h"
#include "cli/cli.h"
#include "cli/model.h"
#include "cli/pictures.h"
#include "cli/term/json.h"
#include "cli/term/table.h"

typedef struct args {
    const char *out, *labels, *family, *preprocess;
    cli_list images;
    double score, iou;
    int64_t max_det, every;
    bool per_class, skip_bad;
} args;

static const cli_opt opts[] = {
    {CLI_LIST, "images", offsetof(args, images), "DIR|FILE",
     .help = "pictures, as IMAGE; - is a list of names on standard input. May be given several "
             "times"},
    {CLI_INT, "every", offsetof(args, every), "N", .help = "of a video, take every N-th frame",
     .def = "1", .min = 1},
    {CLI_STR, "out", offsetof(args, out), "DIR",
     .help = "write the pictures with boxes into this folder; made if missing"},
    {CLI_F64, "score", offsetof(args, score), "S", .max = 1,
     .help = "keep detections with a higher score", .def = "0.25"},
    {CLI_F64, "iou", offsetof(args, iou), "I", .max = 1,
     .help = "of boxes that overlap more than this, keep the best", .def = "0.65"},
    {CLI_INT, "max-det", offsetof(args, max_det), "N", .help = "detections of a picture, at most",
     .def = "100", .min = 1},
    {CLI_FLAG, "skip-bad", offsetof(args, skip_bad),
     .help = "leave broken pictures out, and name them"},
    {CLI_FLAG, "per-class", offsetof(args, per_class),
     .help = "boxes of different classes do not suppress each other, as in octet eval"},
    CLI_OPT_LABELS(args),
    {CLI_STR, "family", offsetof(args, family), "FAMILY",
     .help = "how to read the outputs; auto: from their shapes", .def = "auto"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "WORDS",
     .help = "changes to the family's preprocessing, as in size=640x640,fit=stretch,scale=1"},
    {0},
};

static const cli_file file_args[] = {
    {"MODEL", CLI_A_NETWORK, CLI_FILE_IN},
    {"IMAGE",
     "pictures (JPEG, PNG, WebP, BMP, TIFF), videos, folders with all below them, lists of names, "
     "patterns in quotes; - is one picture on standard input",
     CLI_FILE_IN | CLI_FILE_MANY | CLI_FILE_MAYBE | CLI_FILE_DATA},
    {0},
};

static const cli_example examples[] = {
    {"detect yolov8n.onnx street.jpg --out found", "Boxes drawn into found/street.jpg"},
    {"detect yolov8n.onnx *.jpg --score 0.5 --json", "Only sure ones, for other programs"},
    {"detect yolov8n.onnx holiday --out found", "All pictures of a folder and its sub-folders"},
    {"detect yolov8n.onnx clip.mp4 --every 25 --out found",
     "Every 25th picture of a video, as found/clip-000025.jpg"},
    {"detect cells.onnx slide.png --labels names.txt --out found", "A network with own classes"},
    {0},
};

/* What all pictures share. */
typedef struct job {
    cli *c;
    const args *args;
    oct_graph *g;
    oct_detector *detector;
    oct_preprocess prep;
    oct_plan *plan;
    oct_run *run;
    oct_dtype dtype;
    const char *input_name;
    void *input;
    oct_detection *found;
    oct_class_names *labels; /* of --labels; NULL: none */
    const char **names;      /* of all classes, for drawing; NULL: COCO's */
    int32_t n_names;
    cli_json *out;
    cli_pictures pictures;
} job;

/* --- the network --- */

static oct_status set_input(job *j)
{
    const int32_t w = j->prep.width, h = j->prep.height;
    const oct_value *v = NULL;
    int64_t dims[4];

    for (int32_t i = 0; i < oct_graph_n_inputs(j->g) && !v; i++)
        if (oct_value_rank(oct_graph_input(j->g, i)) == 4) v = oct_graph_input(j->g, i);
    if (!v) return cli_fail(j->c, OCT_ERR_UNSUPPORTED, "%s: no input for a picture", j->c->model);
    dims[0] = 1;
    if (j->prep.layout == OCT_IMAGE_NHWC) {
        dims[1] = h, dims[2] = w;
        dims[3] = j->prep.color == OCT_COLOR_GRAY ? 1 : 3;
    } else {
        dims[1] = j->prep.color == OCT_COLOR_GRAY ? 1 : 3;
        dims[2] = h, dims[3] = w;
    }
    j->dtype = oct_value_dtype(v);
    j->input_name = oct_value_name(v);
    for (int32_t i = 0; i < oct_graph_n_inputs(j->g); i++) {
        const oct_value *sizes = oct_graph_input(j->g, i); /* the detector takes no other input */
        oct_status st;

        if (oct_value_rank(sizes) != 2 || oct_value_data(sizes)) continue;
        st = oct_graph_set_input_shape(j->g, oct_value_name(sizes), 2, (int64_t[]){1, 2});
        if (st) return st;
    }
    return oct_graph_set_input_shape(j->g, oct_value_name(v), 4, dims);
}

/* A network that wants sizes beside the picture (D-FINE) is told those of its own input: boxes are
 * scaled to the picture afterwards. */
static oct_status fill_sizes(job *j)
{
    const double size[2] = {j->prep.width, j->prep.height};

    for (int32_t i = 0; i < oct_graph_n_inputs(j->g); i++) {
        const oct_value *v = oct_graph_input(j->g, i);
        void *to = NULL;
        oct_status st;

        if (oct_value_data(v) || strcmp(oct_value_name(v), j->input_name) == 0) continue;
        if ((st = oct_run_input(j->run, oct_value_name(v), &to, NULL))) return st;
        for (int k = 0; to && k < 2; k++)
            switch (oct_value_dtype(v)) {
            case OCT_DTYPE_I64:
                ((int64_t *)to)[k] = (int64_t)size[k];
                break;
            case OCT_DTYPE_I32:
                ((int32_t *)to)[k] = (int32_t)size[k];
                break;
            default:
                ((float *)to)[k] = (float)size[k];
            }
    }
    return OCT_OK;
}

/* Names for drawing: numbers where none are known. */
static void list_names(job *j)
{
    const char *from = oct_detector_names_from(j->detector);

    if (from && strcmp(from, "COCO") == 0) return;
    j->n_names = from ? oct_detector_n_classes(j->detector) : 1;
    j->names = cli_alloc((size_t)j->n_names, sizeof(*j->names));
    for (int32_t i = 0; i < j->n_names; i++) {
        const char *name = oct_detector_class_name(j->detector, i);

        j->names[i] = name ? name : "";
    }
}

static oct_status prepare(job *j)
{
    const args *a = j->args;
    oct_status st;

    if ((st = cli_model_fit_words(j->g, a->family, a->preprocess, 1))) return st;
    if ((st = oct_detector_new(j->g, a->family, &j->detector))) return st;
    oct_preprocess_init(&j->prep);
    oct_detector_preprocess(j->detector, &j->prep);
    if (a->preprocess && oct_preprocess_parse(j->c->ctx, &j->prep, a->preprocess))
        return cli_fail(j->c, OCT_ERR_ARG, "option --preprocess: %s", oct_ctx_error(j->c->ctx));
    if ((st = set_input(j))) return st;
    oct_detector_free(j->detector); /* shapes are known now */
    j->detector = NULL;
    if ((st = oct_detector_new(j->g, a->family, &j->detector))) return st;
    if ((st = cli_labels_set(j->c, j->detector, j->labels, a->labels))) return st;
    list_names(j);
    cli_note(j->c, "family %s: %s", oct_detector_family(j->detector),
             oct_detector_why(j->detector));
    if ((st = oct_plan_new(j->g, NULL, &j->plan))) return st;
    if ((st = oct_run_new(j->c->ctx, j->plan, &j->run))) return st;
    if ((st = fill_sizes(j))) return st;
    j->found = cli_alloc((size_t)a->max_det, sizeof(*j->found));
    if ((st = oct_run_input(j->run, j->input_name, &j->input, NULL))) return st;
    if (!j->input)
        return cli_fail(j->c, OCT_ERR_UNSUPPORTED, "%s: the network ignores its picture",
                        j->c->model);
    return OCT_OK;
}

static oct_status make_folder(cli *c, const char *dir)
{
    struct stat sb;

    if (!dir || (stat(dir, &sb) == 0 && S_ISDIR(sb.st_mode))) return OCT_OK;
    if (mkdir(dir, 0777))
        return cli_fail(c, OCT_ERR_IO, "%s: cannot make this folder: %s", dir, strerror(errno));
    return OCT_OK;
}

/* --- one picture --- */

static oct_status draw(job *j, int64_t i, oct_image *im, int32_t n)
{
    char *to;
    oct_status st;

    if ((st = oct_detections_draw(j->c->ctx, im, j->found, n, j->names, j->n_names))) return st;
    to = cli_format("%s/%s", j->args->out, j->pictures.names[i]);
    cli_hold_interrupts();
    st = oct_image_save(j->c->ctx, im, to);
    cli_release_interrupts();
    if (!st && !j->c->opt.json) cli_note(j->c, "%s written", to);
    free(to);
    return st;
}

/* What a picture's entry begins with. */
static cli_json *new_entry(const job *j, int64_t i)
{
    const int64_t frame = cli_pictures_frame(&j->pictures, i);
    cli_json *e = cli_json_object();

    cli_json_str(e, "file", cli_pictures_path(&j->pictures, i));
    if (frame >= 0) cli_json_int(e, "frame", frame);
    return e;
}

static void print_title(const job *j, int64_t i)
{
    const int64_t frame = cli_pictures_frame(&j->pictures, i);

    (void)fputs(cli_pictures_path(&j->pictures, i), stdout);
    if (frame >= 0) (void)printf(", frame %lld", (long long)frame);
}

static void add_json(job *j, int64_t index, const oct_image *im, int32_t n)
{
    cli_json *e = new_entry(j, index), *list = cli_json_array();

    for (int32_t i = 0; i < n; i++) {
        const oct_detection *f = &j->found[i];
        cli_json *o = cli_json_object(), *box = cli_json_array();

        cli_json_str(o, "class", oct_detector_class_name(j->detector, f->category));
        cli_json_int(o, "class_index", f->category);
        cli_json_round(o, "score", (double)f->score, 6);
        cli_json_round(box, NULL, (double)f->x, 3);
        cli_json_round(box, NULL, (double)f->y, 3);
        cli_json_round(box, NULL, (double)f->width, 3);
        cli_json_round(box, NULL, (double)f->height, 3);
        cli_json_add(o, "bbox", box);
        cli_json_add(list, NULL, o);
    }
    cli_json_int(e, "width", oct_image_width(im));
    cli_json_int(e, "height", oct_image_height(im));
    cli_json_add(e, "detections", list);
    cli_json_add(j->out, NULL, e);
}

static void print_found(const job *j, int64_t index, int32_t n)
{
    static const cli_column columns[] = {{"class", CLI_SHRINK}, {"score", CLI_RIGHT},
                                         {"x", CLI_RIGHT},      {"y", CLI_RIGHT},
                                         {"width", CLI_RIGHT},  {"height", CLI_RIGHT}};
    cli_table *t = cli_table_new(columns, (int)CLI_COUNT(columns));

    for (int32_t i = 0; i < n; i++) {
        const oct_detection *f = &j->found[i];
        const char *name = oct_detector_class_name(j->detector, f->category);

        if (name)
            cli_table_cell(t, "%s", name);
        else
            cli_table_cell(t, "class %d", (int)f->category);
        cli_table_cell(t, "%.3f", (double)f->score);
        cli_table_cell(t, "%.1f", (double)f->x);
        cli_table_cell(t, "%.1f", (double)f->y);
        cli_table_cell(t, "%.1f", (double)f->width);
        cli_table_cell(t, "%.1f", (double)f->height);
    }
    print_title(j, index);
    (void)printf(": %d found\n", (int)n);
    if (n) cli_table_print(t, stdout);
    cli_table_free(t);
}

/* Are they probabilities already? If not, a softmax makes them so. */
static bool are_probabilities(const float *scores, int32_t n)
{
    double sum = 0;

    for (int32_t i = 0; i < n; i++) {
        if (!(scores[i] >= 0 && scores[i] <= 1)) return false;
        sum += (double)scores[i];
    }
    return fabs(sum - 1) < 1e-2;
}

static double probability(const float *scores, int32_t n, int32_t best, int32_t k)
{
    double sum = 0;

    if (are_probabilities(scores, n)) return (double)scores[k];
    for (int32_t i = 0; i < n; i++)
        sum += exp((double)scores[i] - (double)scores[best]);
    return exp((double)scores[k] - (double)scores[best]) / sum;
}

/* Classifiers: the five best classes. */
static oct_status show_classes(job *j, int64_t index)
{
    static const cli_column columns[] = {
        {"class", CLI_SHRINK}, {"number", CLI_RIGHT}, {"probability", CLI_RIGHT}};
    enum { BEST = 5 };
    const float *scores = NULL;
    cli_table *t;
    cli_json *e, *list;
    int32_t n = 0, best[BEST], n_best = 0;
    oct_status st = oct_detector_scores(j->detector, j->run, 0, &scores, &n);

    if (st) return st;
    for (int32_t i = 0; i < n; i++) {
        int32_t k = n_best < BEST ? n_best++ : BEST;

        while (k > 0 && scores[i] > scores[best[k - 1]]) {
            if (k < BEST) best[k] = best[k - 1];
            k--;
        }
        if (k < BEST) best[k] = i;
    }
    t = cli_table_new(columns, (int)CLI_COUNT(columns));
    e = new_entry(j, index);
    list = cli_json_array();
    for (int32_t i = 0; i < n_best; i++) {
        const char *name = oct_detector_class_name(j->detector, best[i]);
        const double p = probability(scores, n, best[0], best[i]);
        cli_json *o = cli_json_object();

        cli_table_cell(t, "%s", name ? name : "class");
        cli_table_cell(t, "%d", (int)best[i]);
        cli_table_cell(t, "%.4f", p);
        cli_json_str(o, "class", name);
        cli_json_int(o, "class_index", best[i]);
        cli_json_num(o, "score", (double)scores[best[i]]);
        cli_json_round(o, "probability", p, 6);
        cli_json_add(list, NULL, o);
    }
    cli_json_add(e, "classes", list);
    cli_json_add(j->out, NULL, e);
    if (!j->c->opt.json) {
        print_title(j, index);
        (void)putchar('\n');
        cli_table_print(t, stdout);
    }
    cli_table_free(t);
    return OCT_OK;
}

static oct_status show_boxes(job *j, int64_t i, oct_image *im, const oct_mapping *map)
{
    oct_nms_options o;
    int32_t n = 0;
    oct_status st;

    oct_nms_options_init(&o);
    o.score = (float)j->args->score;
    o.iou = (float)j->args->iou;
    o.agnostic = !j->args->per_class;
    o.max_detections = (int32_t)j->args->max_det;
    if ((st = oct_detector_decode(j->detector, j->run, 0, map, &o, j->found, &n))) return st;
    if (j->c->opt.json)
        add_json(j, i, im, n);
    else
        print_found(j, i, n);
    return j->args->out ? draw(j, i, im, n) : OCT_OK;
}

static oct_status detect(job *j, int64_t i)
{
    const char *model = j->c->model;
    oct_image *im = NULL;
    oct_mapping map;
    oct_status st;

    j->c->model = NULL; /* errors here are about the picture */
    if ((st = cli_pictures_load(&j->pictures, i, &im))) goto done;
    if (!im) { /* broken, and left out */
        j->c->model = model;
        return OCT_OK;
    }
    if ((st = oct_preprocess_run(j->c->ctx, &j->prep, im, j->dtype, j->input, &map))) goto done;
    j->c->model = model;
    if ((st = oct_run_execute(j->run))) goto done;
    st = oct_detector_is_classifier(j->detector) ? show_classes(j, i) : show_boxes(j, i, im, &map);
done:
    oct_image_free(im);
    return st;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    job j = {.c = c, .args = argp, .out = cli_json_array()};
    const cli_pictures_words words = {files + 1, &j.args->images, j.args->every, j.args->skip_bad};
    oct_status st;

    if (j.args->max_det > INT16_MAX)
        return cli_fail(c, OCT_ERR_ARG, "option --max-det: at most %d", INT16_MAX);
    if ((st = cli_labels_load(c, j.args->labels, &j.labels))) goto done;
    if ((st = cli_pictures_open(c, &words, &j.pictures))) goto done;
    if ((st = cli_model_load(c, files[0], NULL, &j.g))) goto done;
    if ((st = cli_model_drop_unknown(c, j.g))) goto done;
    if ((st = cli_model_open_codes(c, &j.g))) goto done;
    cli_diagnose(c, j.g);
    if ((st = prepare(&j))) goto done;
    if ((st = make_folder(c, j.args->out))) goto done;
    for (int64_t i = 0; i < j.pictures.n && !st; i++)
        st = detect(&j, i);
    if (!st && c->opt.json) st = cli_json_print(c, j.out);
done:
    cli_json_free(j.out);
    oct_run_free(j.run);
    oct_plan_free(j.plan);
    oct_detector_free(j.detector);
    oct_graph_free(j.g);
    cli_pictures_close(&j.pictures);
    free(j.found);
    free(j.names);
    oct_class_names_free(j.labels);
    return st;
}

const cli_command cmd_detect = {
    .name = "detect",
    .help = "find objects in pictures",
    .about = "Boxes are listed, and with --out drawn onto upright copies of the pictures (JPEG or "
             "PNG, as they came; JPEG of others and of frames). Pictures of the same name in "
             "different folders keep apart: a/x.jpg becomes a_x.jpg. What kind a model is, how "
             "pictures are prepared for it and how its "
             "outputs are read is recognised from its outputs; --family and --preprocess override "
             "that, see 'octet help eval'. A classifier's five best classes are listed instead.\n\n"
             "With --json: for each picture file, frame (of a video, from 0), width, height, "
             "detections (class, class_index, score, bbox: x, y, width, height in pixels), or "
             "classes (class, class_index, score, probability).",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
