/* SPDX-License-Identifier: Apache-2.0 */
/* octet attach: pre- and postprocessing become a part of the network. */
#include <string.h>

#include "cli/cli.h"
#include "cli/guard.h"
#include "cli/model.h"

typedef struct args {
    const char *output, *family, *preprocess, *layout, *nms, *format;
    double score, iou;
    int64_t max_det, pre_nms, batch;
    cli_list shapes;
} args;

static const cli_opt opts[] = {
    {CLI_STR, "output", offsetof(args, output), "FILE", .letter = 'o', .role = CLI_WRITES,
     .help = "the file to write (required): ONNX, or OpenVINO IR if the name ends in .xml"},
    {CLI_STR, "preprocess", offsetof(args, preprocess), "auto|none|WORDS", .def = "auto",
     .help = "auto: the input takes uint8 RGB pictures of the network's size, and scaling, channel "
             "order and casts as the family wants them are nodes; none: the input stays; words "
             "as in scale=255,mean=.485:.456:.406 change the family's"},
    {CLI_STR, "layout", offsetof(args, layout), "nchw|nhwc", .def = "nchw",
     .help = "of the uint8 input"},
    {CLI_STR, "nms", offsetof(args, nms), "onnx|tensorrt|none", .def = "onnx",
     .help = "boxes are suppressed by ONNX's NonMaxSuppression, by TensorRT's EfficientNMS_TRT, "
             "or outputs stay"},
    {CLI_STR, "format", offsetof(args, format), "batch|flat", .def = "batch",
     .help = "batch: num_predictions, pred_boxes, pred_scores, pred_classes, with places for "
             "--max-det boxes; flat: flat_predictions, rows of picture, x1, y1, x2, y2, score, "
             "class"},
    {CLI_F64, "score", offsetof(args, score), "S", .def = "0.25", .max = 1,
     .help = "keep scores above this"},
    {CLI_F64, "iou", offsetof(args, iou), "T", .def = "0.65", .max = 1,
     .help = "suppress boxes of a class that overlap a better one by more"},
    {CLI_INT, "max-det", offsetof(args, max_det), "N", .def = "300", .min = 1,
     .help = "most boxes of a picture, the best ones"},
    {CLI_INT, "pre-nms", offsetof(args, pre_nms), "N", .def = "1000", .min = 1,
     .help = "anchors that take part, those with the best scores"},
    {CLI_INT, "batch", offsetof(args, batch), "N", .min = 1,
     .help = "pictures of a run; by default as the network has it"},
    {CLI_STR, "family", offsetof(args, family), "FAMILY", .def = "auto",
     .help = "how the network's outputs are read"},
    CLI_OPT_INPUT_SHAPE(args),
    {0},
};

static const cli_file file_args[] = {
    {"IN", CLI_A_NETWORK, CLI_FILE_IN},
    {0},
};

static const cli_example examples[] = {
    {"attach yolo_nas_int8.onnx -o whole.onnx",
     "Bytes in, boxes out, for ONNX Runtime and OpenVINO"},
    {"attach yolov8n.onnx -o whole.onnx --layout nhwc --format flat --score 0.1",
     "Pictures as decoders give them; one row for each box"},
    {"attach yolov8n.onnx -o trt.onnx --nms tensorrt --batch 4", "For TensorRT, four at a time"},
    {"attach resnet50.onnx -o bytes.onnx --nms none", "Only the preprocessing"},
    {"eval whole.onnx --images val --annotations val.json", "Such a file is scored as any other"},
    {0},
};

static oct_status check_word(cli *c, const char *option, const char *word, const char *one,
                             const char *other)
{
    if (strcmp(word, one) == 0 || strcmp(word, other) == 0) return OCT_OK;
    return cli_fail(c, OCT_ERR_ARG, "option --%s: '%s' is neither %s nor %s", option, word, one,
                    other);
}

static oct_status read_options(cli *c, const args *a, oct_attach_options *o)
{
    oct_status st;

    if ((st = check_word(c, "layout", a->layout, "nchw", "nhwc"))) return st;
    if ((st = check_word(c, "format", a->format, "batch", "flat"))) return st;
    if (strcmp(a->nms, "none") && (st = check_word(c, "nms", a->nms, "onnx", "tensorrt")))
        return st;
    if (a->max_det > INT32_MAX || a->pre_nms > INT32_MAX || a->batch > INT32_MAX)
        return cli_fail(c, OCT_ERR_ARG, "--max-det, --pre-nms and --batch are below 2^31");
    oct_attach_options_init(o);
    o->family = a->family;
    o->preprocess = a->preprocess;
    o->layout = strcmp(a->layout, "nhwc") == 0 ? OCT_IMAGE_NHWC : OCT_IMAGE_NCHW;
    o->nms = a->nms;
    o->format = a->format;
    o->score = (float)a->score;
    o->iou = (float)a->iou;
    o->max_det = (int32_t)a->max_det;
    o->pre_nms = (int32_t)a->pre_nms;
    o->batch = (int32_t)a->batch;
    return OCT_OK;
}

static oct_status run(cli *c, const void *argp, char **files)
{
    const args *a = argp;
    oct_graph *g = NULL, *whole = NULL;
    oct_attach_options o;
    oct_status st;

    if (!a->output) return cli_missing(c, "option --output (-o OUT.onnx)");
    if ((st = read_options(c, a, &o))) return st;
    if ((st = cli_check_model_name(c, "--output", a->output))) return st;
    if ((st = cli_model_load(c, files[0], &a->shapes, &g))) return st;
    st = oct_graph_attach(g, &o, &whole);
    oct_graph_free(g);
    if (st) return st;
    st = cli_model_write(c, whole, a->output, false);
    oct_graph_free(whole);
    return st;
}

const cli_command cmd_attach = {
    .name = "attach",
    .help = "put pre- and postprocessing into a network: bytes in, boxes out",
    .about =
        "For float and quantized detectors of every family that octet reads. Resizing stays "
        "outside: pictures come in the network's size. Names and shapes of the outputs are "
        "those of super-gradients' export; places without a box hold -1. Boxes are corners in "
        "pixels of the input, and each picture's rows come best first, so that --max-det leaves "
        "out the worst. With --nms tensorrt outputs are num_dets, det_boxes, det_scores and "
        "det_classes, and only TensorRT and octet run the file.\n\n"
        "How pictures are still to be resized is kept in the file (metadata octet.preprocess), "
        "for octet's own commands.\n\n"
        "With --json: nodes, inputs and outputs, each with name, type and shape.",
    .files = file_args,
    .opts = opts,
    .args_size = sizeof(args),
    .examples = examples,
    .run = run,
};
