/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a dataset, filled by its readers (one file for each format). */
#ifndef OCT_DATA_DATASET_H
#define OCT_DATA_DATASET_H

#include <stdatomic.h>

#include "data/image/image.h"
#include "data/notes.h"

/* Status of a picture; only used where broken ones are skipped. */
enum { OCT_ITEM_UNKNOWN, OCT_ITEM_GOOD, OCT_ITEM_BROKEN };

/* One picture, or one set of tensors. */
typedef struct oct_item {
    const char *path; /* of the arena */
    int64_t frame;    /* of a video, from 0; -1: the file is a picture */
    int64_t id;       /* COCO's; for tensors the number in their source */
    int32_t class_index;
    int32_t n_labels;
    const oct_label *labels; /* of the arena */
    atomic_uchar state;      /* set when a loader reaches it, on any thread */
} oct_item;

typedef struct oct_category {
    const char *name;
    int64_t id;
} oct_category;

/* What the numbers of categories mean. */
typedef enum oct_numbering {
    OCT_NUMBERED_BY_ID,    /* their order is that of the file's ids */
    OCT_NUMBERED_BY_CLASS, /* they are the network's own: YOLO */
    OCT_NUMBERED_BY_NAME,  /* nothing: there are only names, which were sorted */
} oct_numbering;

typedef struct oct_tensors oct_tensors; /* tensors.c */
typedef struct oct_source oct_source;   /* source.c */

/* Reads pictures one after another; keeps a video open between its frames. Of one thread. */
typedef struct oct_picture_reader {
    struct oct_video *video; /* NULL: none is open */
    const char *path;        /* of the video */
} oct_picture_reader;

oct_status oct_picture_read(oct_picture_reader *r, oct_ctx *ctx, const oct_item *item,
                            oct_image **out);
void oct_picture_reader_close(oct_picture_reader *r); /* before its context goes */

struct oct_dataset {
    oct_ctx *ctx;
    oct_arena *arena;
    const char *kind;
    bool skip_bad;
    bool has_ids; /* the items' ids are the file's */
    int64_t skipped;
    oct_item *items;
    size_t n_items, cap_items;
    oct_category *categories;
    size_t n_categories, cap_categories;
    oct_numbering numbering;
    bool is_boxes;         /* labels are boxes, though there may be none */
    bool has_names;        /* categories are called by names, not just by numbers */
    int32_t top_class;     /* NUMBERED_BY_CLASS: the largest number seen, -1: none .. */
    const char *top_where; /* .. and where: "FILE: line N" */
    oct_tensors *tensors;  /* NULL: pictures, or a source */
    oct_source *source;    /* NULL: not from a callback */
    oct_notes *notes;      /* what was left out; changes while a loader works */
    int32_t every;         /* of a video, one picture of this many */
    bool has_video;
    oct_picture_reader reader; /* of oct_dataset_load() */
};

/* Appends a picture without labels and class; `path` must live as long as the arena. */
oct_status oct_dataset_add(oct_dataset *d, const char *path);
oct_status oct_dataset_add_category(oct_dataset *d, const char *name, int64_t id);

/*
 * Call it where a broken entry was found and the reason is set: prefixes the reason with `where`;
 * if broken entries are to be skipped, counts this one and returns OCT_OK. Out of memory is not a
 * broken entry.
 */
oct_status oct_dataset_bad(oct_dataset *d, oct_status st, const char *where);

/* "FOLDER/NAME" in the arena; NAME itself if folder is NULL. NULL: no memory. */
const char *oct_dataset_join(oct_dataset *d, const char *folder, const char *name);

/* Labels collected for one picture. */
typedef struct oct_labels {
    oct_label *items;
    size_t n, cap;
} oct_labels;

oct_status oct_labels_add(oct_ctx *ctx, oct_labels *l, const oct_label *label);
/* Copies them to the arena and gives them to picture `item`; l is empty then. */
oct_status oct_labels_give(oct_dataset *d, oct_labels *l, oct_item *item);

/* Fails unless the four numbers are finite, not huge, and the sides not negative. */
oct_status oct_label_check(oct_ctx *ctx, const oct_label *label);
/* Fails if the box lies entirely outside a picture of this size (0: not known). */
oct_status oct_label_check_inside(oct_ctx *ctx, const oct_label *label, int64_t width,
                                  int64_t height);

/* Is the box a point or a line? Notes it (with its file) as skipped: there is nothing to detect. */
bool oct_label_is_empty(oct_dataset *d, const oct_label *label, const char *file);

/*
 * The next picture that is not broken, for running networks; *out NULL after the last. A broken one
 * is an error, or with skip_bad skipped and noted; it is also an error if none is left. Errors go
 * to `ctx`. Give pictures back with oct_loader_done().
 */
oct_status oct_loader_take(oct_loader *l, oct_ctx *ctx, const oct_loaded **out);

/* Of a dataset from a callback: the tensor of item i for the network's input `name`. */
oct_status oct_source_get(oct_source *s, int64_t i, const char *name, oct_tensor **out);
void oct_source_free(oct_source *s); /* accepts NULL */

/* An empty dataset; `notes` and arena are there. */
oct_status oct_dataset_new(oct_ctx *ctx, oct_dataset **out);

/* The readers. `images` is the pictures' folder, or NULL where only the annotations are read. */
oct_status oct_read_coco(oct_dataset *d, const char *images, const char *path);
oct_status oct_parse_coco(oct_dataset *d, const char *images, oct_bytes file);
oct_status oct_read_voc(oct_dataset *d, const char *images, const char *folder);
oct_status oct_read_yolo(oct_dataset *d, const char *images, const char *folder);
oct_status oct_read_data_yaml(oct_dataset *d, const char *images, const char *path);
oct_status oct_read_data_yaml_pictures(oct_dataset *d, const char *path); /* without labels */
oct_status oct_read_list(oct_dataset *d, const char *images, const char *path);
oct_status oct_read_pictures(oct_dataset *d, const char *folder);
oct_status oct_read_class_folders(oct_dataset *d, const char *folder);

/* A pattern, a video or "-"? These, and several paths at once, are read by oct_read_input(). */
bool oct_is_inputs(const char *path);
oct_status oct_read_input(oct_dataset *d, const char *path);

/* Recognises the kind and calls its reader. Either may be NULL, not both. */
oct_status oct_dataset_recognise(oct_dataset *d, const char *images, const char *annotations);

#endif
