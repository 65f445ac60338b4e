/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of files that people take for networks or pictures. */
#include "base/sniff.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"

#define EXPORT_TORCH                                                                               \
    "export it from Python: torch.onnx.export(model, example, \"model.onnx\"), or "                \
    "torch.export.save(torch.export.export(model, (example,)), \"model.pt2\"), or with the "       \
    "exporter of its toolbox"
#define EXPORT_TF "convert it with tf2onnx: python -m tf2onnx.convert"

enum {
    ENDS = 4096,
    DIRECTORY = 1 << 20
}; /* bytes that are searched at both ends; at the end of
      an archive */

static bool starts(const uint8_t *data, size_t size, const char *bytes, size_t n)
{
    return size >= n && memcmp(data, bytes, n) == 0;
}

#define STARTS(text) starts(data, size, text, sizeof(text) - 1)

static bool contains(const uint8_t *data, size_t size, const char *text)
{
    const size_t n = size < ENDS ? size : ENDS;

    return memmem(data, n, text, strlen(text)) || memmem(data + size - n, n, text, strlen(text));
}

/* Is there a member with this in its name? */
static bool lists(const uint8_t *data, size_t size, const char *name)
{
    const size_t n = size < DIRECTORY ? size : DIRECTORY;

    return contains(data, size, name) || memmem(data + size - n, n, name, strlen(name));
}

/* Behind blanks, as text may begin. */
static size_t blanks(const uint8_t *data, size_t size)
{
    size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (i < size && i < ENDS && strchr(" \t\r\n", data[i]) && data[i])
        i++;
    return i;
}

static bool is_text(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size && i < ENDS; i++)
        if (data[i] < 0x20 && !strchr("\t\r\n\f", data[i])) return false;
    return size > 0 && data[0] != 0;
}

static const oct_kind *zip_kind(const uint8_t *data, size_t size)
{
    static const oct_kind torch = {"a PyTorch file (.pt, .pth)", EXPORT_TORCH},
                          exported = {"a network of torch.export (.pt2)",
                                      "oct_model_load() reads it", OCT_KIND_TORCH_EXPORT},
                          keras = {"a Keras network (.keras)", EXPORT_TF},
                          arrays = {"an archive of NumPy arrays (.npz)", NULL},
                          zip = {"a zip archive", "unpack it first"};

    if (lists(data, size, "archive_format") || lists(data, size, "serialized_exported"))
        return &exported;
    if (contains(data, size, "data.pkl") || contains(data, size, "/byteorder")) return &torch;
    if (contains(data, size, "model.weights.h5")) return &keras;
    if (contains(data, size, ".npy")) return &arrays;
    return &zip;
}

static const oct_kind *text_kind(const uint8_t *data, size_t size)
{
    static const oct_kind html = {"a web page (HTML)",
                                  "the download did not give the file itself; look at its "
                                  "address"},
                          openvino = {"an OpenVINO network (.xml)", "oct_model_load() reads it",
                                      OCT_KIND_OPENVINO},
                          xml = {"an XML file", NULL}, json = {"a JSON file", NULL},
                          lfs = {"a pointer of Git LFS", "fetch the file itself: git lfs pull"},
                          ncnn = {"an ncnn network (.param)",
                                  "give the ONNX file that it was made from"},
                          caffe = {"a Caffe network (.prototxt)", "convert it to ONNX first"},
                          tf_text = {"a TensorFlow graph in text form (.pbtxt)", EXPORT_TF},
                          text = {"a text file", NULL};
    const size_t skip = blanks(data, size);

    data += skip;
    size -= skip;
    if (STARTS("version https://git-lfs")) return &lfs;
    if (STARTS("7767517")) return &ncnn;
    if (STARTS("<") &&
        (contains(data, size, "<html") || contains(data, size, "<HTML") ||
         contains(data, size, "<!DOCTYPE html") || contains(data, size, "<!doctype html")))
        return &html;
    if (STARTS("<") && contains(data, size, "<net ") && contains(data, size, "<layer"))
        return &openvino;
    if (STARTS("<")) return &xml;
    if (STARTS("{") || STARTS("[")) return &json;
    if (!is_text(data, size)) return NULL;
    if (contains(data, size, "node {") && contains(data, size, "op:")) return &tf_text;
    if (contains(data, size, "layer {") || contains(data, size, "layers {")) return &caffe;
    return &text;
}

/* Protobuf of another schema. A SavedModel begins with its version and a MetaGraphDef; a GraphDef
 * with a node that has a name and an operator. */
static bool is_tensorflow(const uint8_t *data, size_t size)
{
    return (STARTS("\x08\x01\x12") && contains(data, size, "saved_model")) ||
           (STARTS("\x0a") && (contains(data, size, "Placeholder") ||
                               contains(data, size,
                                        "\x12\x05"
                                        "Const") ||
                               contains(data, size, "_output_shapes")));
}

/* Eight bytes of length, then JSON. */
static bool is_safetensors(const uint8_t *data, size_t size)
{
    return size > 16 && data[6] == 0 && data[7] == 0 && data[8] == '{' && data[9] == '"';
}

const oct_kind *oct_sniff(const uint8_t *data, size_t size)
{
    static const struct {
        size_t at, n;
        const char *bytes;
        oct_kind kind;
    } kinds[] = {
        {0, 3, "\xff\xd8\xff", {"a JPEG picture", NULL}},
        {0, 8, "\x89PNG\r\n\x1a\n", {"a PNG picture", NULL}},
        {0, 4, "GIF8", {"a GIF picture", NULL}},
        {8, 4, "WEBP", {"a WebP picture", NULL}},
        {0, 4, "%PDF", {"a PDF file", NULL}},
        {0, 6, "\x93NUMPY", {"a NumPy array (.npy)", NULL}},
        {0, 2, "\x1f\x8b", {"a gzip file", "unpack it first: gunzip, or tar xf"}},
        {0,
         6,
         "\xfd"
         "7zXZ\0",
         {"an xz file", "unpack it first: unxz, or tar xf"}},
        {0, 4, "\x28\xb5\x2f\xfd", {"a zstd file", "unpack it first: unzstd"}},
        {4,
         4,
         "TFL3",
         {"a TensorFlow Lite network", "convert it with tf2onnx: python -m "
                                       "tf2onnx.convert --tflite"}},
        {4,
         4,
         "ORTM",
         {"a network in ONNX Runtime's own form (.ort)",
          "give the ONNX file that it was made from"}},
        {0, 8, "\x89HDF\r\n\x1a\n", {"an HDF5 file, as Keras writes networks (.h5)", EXPORT_TF}},
        {0, 4, "ftrt", {"a TensorRT engine", "give the ONNX file that it was built from"}},
        {0, 4, "ptrt", {"a TensorRT engine", "give the ONNX file that it was built from"}},
        {0, 2, "\x80\x02", {"a Python pickle, as old PyTorch files are", EXPORT_TORCH}},
        {0, 2, "\x80\x04", {"a Python pickle", EXPORT_TORCH}},
        {0, 2, "\x80\x05", {"a Python pickle", EXPORT_TORCH}},
        {0,
         4,
         "\x7f"
         "ELF",
         {"a program or library", NULL}},
    };
    static const oct_kind tensorflow = {"a TensorFlow graph (.pb, SavedModel)", EXPORT_TF},
                          safetensors = {"a file of weights (safetensors)",
                                         "it holds no network; " EXPORT_TORCH,
                                         OCT_KIND_SAFETENSORS},
                          empty = {"empty", "was the download complete?"};

    if (size == 0) return &empty;
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (size >= kinds[i].at + kinds[i].n &&
            memcmp(data + kinds[i].at, kinds[i].bytes, kinds[i].n) == 0)
            return &kinds[i].kind;
    if (STARTS("PK\x03\x04")) return zip_kind(data, size);
    if (is_safetensors(data, size)) return &safetensors;
    if (is_tensorflow(data, size)) return &tensorflow;
    return text_kind(data, size);
}
