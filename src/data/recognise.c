/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kind of dataset was given.
 *
 *   annotations          images            kind
 *   a file, JSON         folder or none    COCO
 *   a file, .yaml        folder or none    YOLO, as Ultralytics' data.yaml says
 *   a file, other        folder or none    list: "name class" lines
 *   a folder with .xml   folder or none    VOC
 *   a folder with .txt   folder            YOLO
 *   a folder with one .json                COCO
 *   none                 a picture         pictures
 *                        .npz              tensors
 *                        .yaml             pictures of the data.yaml
 *                        another file      list
 *                        a folder with pictures; .npy or .npz; sub-folders of pictures (classes) or
 *                        of .npy (inputs); sub-folders "images" and "annotations" or "labels"
 */
#include <string.h>

#include "base/sniff.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/tensors.h"

/* By extension first, which is fast; but a picture may have any name. */
static oct_status has_pictures(oct_dataset *d, const char *folder, const oct_listing *l, bool *out)
{
    const char *path;

    *out = false;
    for (size_t i = 0; i < l->files.n && !*out; i++)
        *out = oct_codec_by_name(l->files.items[i]) != NULL;
    for (size_t i = 0; i < l->files.n && !*out; i++) {
        if (oct_has_extension(l->files.items[i], ".npy")) return OCT_OK;
        if (!(path = oct_dataset_join(d, folder, l->files.items[i]))) return OCT_ERR_MEMORY;
        *out = oct_is_picture_file(path);
    }
    return OCT_OK;
}

/* The first character that is not white space. */
static oct_status first_char(oct_ctx *ctx, const char *path, char *out)
{
    oct_file *f = NULL;
    const uint8_t *p;
    size_t i = 0;

    OCT_TRY(oct_file_map(ctx, path, &f));
    p = oct_file_data(f);
    if (oct_file_size(f) >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) i = 3;
    while (i < oct_file_size(f) && strchr(" \t\r\n", p[i]) && p[i])
        i++;
    *out = i < oct_file_size(f) ? (char)p[i] : '\0';
    oct_file_unref(f);
    return OCT_OK;
}

static bool is_yaml(const char *path)
{
    return oct_has_extension(path, ".yaml") || oct_has_extension(path, ".yml");
}

/* Is the first line "class cx cy w h"? */
static oct_status is_yolo_line(oct_ctx *ctx, const char *path, bool *out)
{
    char line[128] = "", *p = line;
    oct_file *f = NULL;
    int n = 0;

    OCT_TRY(oct_file_map(ctx, path, &f));
    memcpy(line, oct_file_data(f), OCT_MIN(oct_file_size(f), sizeof(line) - 1));
    oct_file_unref(f);
    line[strcspn(line, "\r\n")] = '\0';
    *out = strspn(line, "0123456789.eE+- \t") == strlen(line);
    while (*out && *(p += strspn(p, " \t"))) {
        p += strcspn(p, " \t");
        n++;
    }
    *out = n == 5;
    return OCT_OK;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Bytes that text does not contain. */
static bool is_binary(const uint8_t *p, size_t size)
{
    for (size_t i = 0; i < size && i < 4096; i++)
        if (p[i] < '\t') return true;
    return false;
}

/* Pictures, networks and archives are no labels; what they are is known from their first bytes. */
static oct_status check_labels(oct_ctx *ctx, const char *path)
{
    const oct_kind *kind;
    oct_file *f = NULL;
    const char *what = NULL;

    OCT_TRY(oct_file_map(ctx, path, &f));
    kind = oct_sniff(oct_file_data(f), oct_file_size(f));
    if (kind && !strcmp(kind->name, "a text file"))
        what = NULL; /* its parser reports a wrong line by its number */
    else if (is_binary(oct_file_data(f), oct_file_size(f)))
        what = kind                               ? kind->name
               : oct_has_extension(path, ".onnx") ? "an ONNX network"
                                                  : "binary data";
    else if (kind && kind->advice && oct_file_size(f))
        what = kind->name;
    oct_file_unref(f);
    if (!what) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG,
                    "%s: %s, no labels; these are COCO .json, a folder of VOC .xml or YOLO .txt, a "
                    "data.yaml, or a list 'picture class'",
                    path, what);
}

static oct_status read_annotation_file(oct_dataset *d, const char *images, const char *path)
{
    char first = '\0';
    bool yolo = false;

    OCT_TRY(check_labels(d->ctx, path));
    if (is_yaml(path)) return oct_read_data_yaml(d, images, path);
    OCT_TRY(first_char(d->ctx, path, &first));
    if (!first) return oct_fail(d->ctx, OCT_ERR_FORMAT, "%s: the file is empty", path);
    if (first == '{') return oct_read_coco(d, images, path);
    if (first == '[')
        return oct_fail(d->ctx, OCT_ERR_FORMAT,
                        "%s: a JSON array; COCO's annotations are an object with \"images\" (is "
                        "this a file of results?)",
                        path);
    if (first == '<')
        return oct_fail(d->ctx, OCT_ERR_ARG, "%s: XML; give the folder of VOC's .xml files", path);
    OCT_TRY(is_yolo_line(d->ctx, path, &yolo));
    if (yolo)
        return oct_fail(d->ctx, OCT_ERR_ARG,
                        "%s: YOLO's labels of one picture; give the folder of these .txt files",
                        path);
    OCT_TRY(oct_read_list(d, images, path));
    if (images && d->n_items && d->items[0].class_index < 0 &&
        !oct_codec_by_name(d->items[0].path) && !oct_is_file(d->items[0].path))
        return oct_fail(
            d->ctx, OCT_ERR_ARG,
            "%s: \"%.40s\" is no picture, so these are no labels; labels are COCO .json, "
            "a folder of VOC .xml or YOLO .txt, a data.yaml, or a list 'picture class'",
            path, last_part(d->items[0].path));
    return OCT_OK;
}

/* The only .json of a folder. */
static oct_status read_only_json(oct_dataset *d, const char *images, const char *folder,
                                 const oct_listing *l)
{
    for (size_t i = 0; i < l->files.n; i++) {
        const char *path;

        if (!oct_has_extension(l->files.items[i], ".json")) continue;
        path = oct_dataset_join(d, folder, l->files.items[i]);
        return path ? oct_read_coco(d, images, path) : OCT_ERR_MEMORY;
    }
    return OCT_OK;
}

static oct_status read_annotation_folder(oct_dataset *d, const char *images, const char *folder)
{
    oct_listing l = {0};
    size_t n_json;
    oct_status st;

    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    n_json = oct_listing_count(&l, ".json");
    if (oct_listing_count(&l, ".xml"))
        st = oct_read_voc(d, images, folder);
    else if (oct_listing_count(&l, ".txt"))
        st = oct_read_yolo(d, images, folder);
    else if (n_json == 1)
        st = read_only_json(d, images, folder, &l);
    else if (n_json)
        st = oct_fail(d->ctx, OCT_ERR_ARG, "%s: %zu .json files; name the one to use", folder,
                      n_json);
    else
        st = oct_fail(d->ctx, OCT_ERR_FORMAT,
                      "%s: neither .xml (VOC) nor .txt (YOLO) nor .json (COCO) in it", folder);
    oct_listing_close(&l);
    return st;
}

/* DIR/NAME for the first of the names that is a sub-folder; NULL in *out if none is. */
static oct_status find_folder(oct_dataset *d, const char *dir, const char *const *names,
                              const char **out)
{
    for (int i = 0; names[i]; i++) {
        const char *path = oct_dataset_join(d, dir, names[i]);

        if (!path) return OCT_ERR_MEMORY;
        if (oct_is_folder(path)) {
            *out = path;
            return OCT_OK;
        }
    }
    return OCT_OK;
}

/* Pictures and annotations side by side below one folder. */
static oct_status read_pair(oct_dataset *d, const char *folder, bool *found)
{
    static const char *const picture_names[] = {"images", "JPEGImages", NULL};
    static const char *const label_names[] = {"annotations", "Annotations", "labels", NULL};
    const char *images = NULL, *labels = NULL;

    OCT_TRY(find_folder(d, folder, picture_names, &images));
    OCT_TRY(find_folder(d, folder, label_names, &labels));
    *found = images && labels;
    return *found ? read_annotation_folder(d, images, labels) : OCT_OK;
}

/* What the first sub-folder with anything in it holds. */
static oct_status read_sub_folders(oct_dataset *d, const char *folder, const oct_listing *l)
{
    bool found = false;

    OCT_TRY(read_pair(d, folder, &found));
    if (found) return OCT_OK;
    for (size_t i = 0; i < l->folders.n; i++) {
        const char *path = oct_dataset_join(d, folder, l->folders.items[i]);
        oct_listing sub = {0};
        oct_status st;
        size_t n_npy;

        if (!path) return OCT_ERR_MEMORY;
        OCT_TRY(oct_listing_open(d->ctx, path, &sub));
        st = has_pictures(d, path, &sub, &found);
        n_npy = oct_listing_count(&sub, ".npy");
        oct_listing_close(&sub);
        if (st) return st;
        if (found) return oct_read_class_folders(d, folder);
        if (n_npy) return oct_read_npy_folders(d, folder);
    }
    OCT_TRY(oct_read_pictures(d, folder)); /* further down */
    if (d->n_items) return OCT_OK;
    return oct_fail(d->ctx, OCT_ERR_FORMAT,
                    "%s: no pictures, no .npy, no .npz in it or its sub-folders", folder);
}

static oct_status read_image_folder(oct_dataset *d, const char *folder)
{
    oct_listing l = {0};
    bool pictures = false;
    oct_status st;

    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    st = has_pictures(d, folder, &l, &pictures);
    if (st)
        ; /* no memory */
    else if (pictures)
        st = oct_read_pictures(d, folder);
    else if (oct_listing_count(&l, ".npy"))
        st = oct_read_npy_folder(d, folder);
    else if (oct_listing_count(&l, ".npz"))
        st = oct_read_npz_folder(d, folder);
    else
        st = read_sub_folders(d, folder, &l);
    oct_listing_close(&l);
    return st;
}

static oct_status read_image_file(oct_dataset *d, const char *path)
{
    const char *slash = strrchr(path, '/'), *folder;
    char first = '\0';

    if (oct_has_extension(path, ".npz")) return oct_read_npz(d, path);
    if (is_yaml(path)) return oct_read_data_yaml_pictures(d, path);
    if (oct_has_extension(path, ".npy"))
        return oct_fail(d->ctx, OCT_ERR_ARG, "%s: give the folder of .npy files, or a .npz", path);
    if (oct_is_picture_file(path)) {
        const char *copy = oct_dataset_join(d, NULL, path);

        d->kind = "pictures";
        return copy ? oct_dataset_add(d, copy) : OCT_ERR_MEMORY;
    }
    OCT_TRY(first_char(d->ctx, path, &first));
    if (first == '{')
        return oct_fail(d->ctx, OCT_ERR_ARG, "%s: JSON; give it as annotations, not as images",
                        path);
    folder = slash ? oct_arena_strndup(d->arena, path, (size_t)(slash - path) + 1) : ".";
    return folder ? oct_read_list(d, folder, path) : OCT_ERR_MEMORY;
}

oct_status oct_dataset_recognise(oct_dataset *d, const char *images, const char *annotations)
{
    if (annotations) {
        if (images && !oct_is_folder(images))
            return oct_fail(d->ctx, OCT_ERR_IO, "%s: not a folder of pictures", images);
        if (oct_is_folder(annotations)) return read_annotation_folder(d, images, annotations);
        return read_annotation_file(d, images, annotations);
    }
    if (oct_is_folder(images)) return read_image_folder(d, images);
    return read_image_file(d, images);
}
