/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a family of detectors is: one row that recognises a network, knows its preprocessing and
 * decodes its outputs. To add one: family_<name>.c, one line in families.def, one in meson.build.
 */
#ifndef OCT_DETECT_FAMILY_H
#define OCT_DETECT_FAMILY_H

#include <octet/detect.h>

#include "data/labels/class_names.h"
#include "detect/nms.h"
#include "graph/graph.h"

#define OCT_MAX_LEVELS 6

struct oct_head;

/* What the file says about the network (metadata.c). */
typedef struct oct_metadata {
    const char *task;          /* "detect", "segment", "pose", "obb", "classify"; "": not known */
    oct_class_names *names;    /* of all classes; NULL: not known */
    int32_t width, height;     /* the network is made for; 0: not known */
    int32_t n_keypoint_values; /* of a box; 0: not known */
    oct_preprocess preprocess; /* what pictures need, as oct_graph_attach() noted it */
    bool has_preprocess;
} oct_metadata;

/* The key under which that is kept in a file. */
#define OCT_METADATA_PREPROCESS "octet.preprocess"

oct_status oct_metadata_read(const oct_graph *g, oct_metadata *out);
void oct_metadata_fini(oct_metadata *m);

/* A network as a family sees it; shapes are bound. */
typedef struct oct_net {
    oct_metadata says;
    const oct_graph *g;
    const oct_value *input; /* takes the picture */
    const oct_value *sizes; /* takes the picture's width and height; NULL: none does */
    bool is_nhwc;
    int32_t width, height;
} oct_net;

/* Strides of the feature maps that the anchors come from. */
typedef struct oct_levels {
    int32_t n; /* 0: not known */
    int32_t stride[OCT_MAX_LEVELS];
} oct_levels;

/* How sure a family is. Equal best answers are ambiguous. */
enum {
    OCT_SURE_NO = 0,     /* the outputs do not have this family's form */
    OCT_SURE_ASKED = 1,  /* only if the user names the family */
    OCT_SURE_MAYBE = 40, /* fits, but others may too */
    OCT_SURE_LIKELY = 70,
    OCT_SURE_YES = 90,
    OCT_SURE_MORE = 95 /* others are sure too, but recognise only a part of it */
};

/* What recognising found, for the decoder. */
typedef struct oct_reading {
    char why[256]; /* one sentence */
    int32_t n_classes;
    int32_t boxes, scores, extra[2]; /* which outputs; -1: none */
    int32_t level_boxes[OCT_MAX_LEVELS], level_scores[OCT_MAX_LEVELS];
    oct_levels levels;
    int32_t bins;          /* of a distribution over distances */
    int32_t form;          /* the family's own */
    bool is_logits;        /* scores need a sigmoid */
    bool has_background;   /* class 0 is the background */
    bool scores_turned;    /* beside NonMaxSuppression's indices: [anchors, classes] */
    bool boxes_centred;    /* centre and size, not corners */
    bool score_first;      /* rows of 7: the score before the class */
    bool is_stretched;     /* the network is told the picture's size, and scales boxes to it */
    bool is_tf_scaled;     /* pixels to -1..1 instead of ImageNet's statistics */
    int32_t width, height; /* of the network's input */
    const char *cannot;    /* why the outputs cannot be decoded although the family is known; NULL:
                            * they can */
} oct_reading;

/* One picture's part of an output, as floats. */
typedef struct oct_view {
    const float *x;
    int32_t rank;
    int64_t dim[OCT_MAX_RANK];
} oct_view;

/* The arguments of a decoder. */
typedef struct oct_decoding {
    oct_ctx *ctx;
    oct_detector *detector;
    const oct_reading *reading;
    oct_run *run;
    int32_t index;   /* in the batch */
    float threshold; /* scores must be above */
    oct_candidates *found;
} oct_decoding;

typedef struct oct_family {
    const char *name;
    const char *help; /* the outputs it reads, in one line */
    bool is_classifier;
    bool is_suppressed; /* NMS is part of the network: no box suppresses another again */
    oct_status (*match)(const oct_net *net, oct_reading *r, int32_t *sure);
    void (*preprocess)(const oct_reading *r, oct_preprocess *p); /* over the defaults */
    oct_status (*decode)(oct_decoding *d);                       /* NULL: a classifier */
    /* Emits what decode() computes, up to suppression (attach.h); NULL: not needed, or no boxes. */
    oct_status (*attach)(oct_builder *b, const oct_reading *r, struct oct_head *out);
} oct_family;

const oct_family *oct_family_at(int32_t i); /* NULL beyond the end */
const oct_family *oct_family_find(const char *name);

/* --- examining a network (net.c) --- */

/*
 * Finds the picture's input. If shapes are open, *bound gets a copy of the graph with batch 1,
 * which the caller frees after the net. An open size is that of `asked`, or, where this is NULL,
 * what the file says, or 640x640.
 */
oct_status oct_net_init(oct_net *net, const oct_graph *g, const oct_preprocess *asked,
                        oct_graph **bound);
void oct_net_fini(oct_net *net);

/* Type of output i; NULL: there is none. */
static inline const oct_type *oct_net_out(const oct_net *net, int32_t i)
{
    return i >= 0 && i < net->g->n_outputs ? &net->g->outputs[i]->type : NULL;
}

int64_t oct_net_cells(const oct_net *net, int32_t stride); /* of one feature map */

/* Mask coefficients that segmentation networks put after the classes: as many as the prototypes
 * have. */
int64_t oct_net_mask_channels(const oct_net *net);

/* The levels whose cells, times per_cell, make n anchors: strides 8..32, then rarer ones. */
oct_levels oct_net_levels(const oct_net *net, int64_t n, int32_t per_cell);

/* Is there a node for which `fn` holds between value v and the last layers with weights? */
typedef bool (*oct_node_test)(const oct_node *n);
oct_status oct_net_tail(const oct_net *net, const oct_value *v, oct_node_test fn, bool *found);

bool oct_node_is_sigmoid(const oct_node *n);
bool oct_node_is_softmax(const oct_node *n);
bool oct_node_decodes_boxes(const oct_node *n); /* exponents, grids, strides */
bool oct_net_has_op(const oct_net *net, const char *op);

/* --- helping decoders (detector.c, decode.c) --- */

/* The part of output `i` that belongs to the picture, with `rank` dims left. */
oct_status oct_decoding_view(oct_decoding *d, int32_t i, int32_t rank, oct_view *v);

/* The whole of output `i`. */
oct_status oct_decoding_whole(oct_decoding *d, int32_t i, oct_view *v);

/* Fails, saying that output `i` does not have the shape it was recognised by. */
oct_status oct_decoding_misfit(const oct_decoding *d, int32_t i);

/* The first of s[from .. n) above t, or n. */
int64_t oct_find_above(const float *s, int64_t n, int64_t from, float t);

float oct_sigmoid(float x);
float oct_logit(float p); /* -inf at 0 and below, inf at 1 and above */

/* DFL: sum of i * softmax(x)[i], the expected value of a distribution over 0, 1, .. n - 1. */
float oct_distribution_mean(const float *x, int32_t n);

/*
 * Boxes from per-cell distances left, top, right, bottom as distributions (counted in strides):
 * scores [n, classes], distances [n, 4 * bins], one cell after the other, row by row. The centre of
 * cell x is (x + 0.5) * stride + shift.
 */
typedef struct oct_dfl_level {
    oct_view scores, distances;
    int32_t stride;
    float shift;
    int64_t first; /* anchors of the levels before */
} oct_dfl_level;

void oct_decode_dfl(oct_decoding *d, const oct_dfl_level *l);

/* --- the detector itself (detector.c, classes.c) --- */

struct oct_detector {
    oct_ctx *ctx;
    const oct_family *family;
    oct_reading reading;
    bool is_nhwc, is_gray;
    oct_preprocess preprocess; /* as the file says; has_preprocess false: as the family wants */
    bool has_preprocess;
    oct_class_names *names; /* NULL: not known */
    bool names_given;       /* by the user, not by the file */
    oct_candidates found;
    float **converted; /* of outputs that are not float32 */
    size_t *cap_converted;
    int32_t n_out;
};

/* Takes over the names if they fit what was recognised. */
oct_status oct_detector_take_metadata(oct_detector *d, oct_metadata *m);

/* --- two outputs for each feature map (levels.c): NanoDet, PicoDet --- */

oct_status oct_match_levels(const oct_net *net, oct_reading *r); /* levels.n 0: no such outputs */
oct_status oct_decode_levels(oct_decoding *d, float shift);

#endif
