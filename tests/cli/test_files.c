/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing the user owns is overwritten: inputs, files of others, read-only files, devices. */
#include "cli/program.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static int net_setup(void **state)
{
    if (place_setup(state)) return -1;
    make_net(*state);
    return 0;
}

static void path_of(place *p, const char *name, char path[4096])
{
    (void)snprintf(path, 4096, "%s/%s", p->dir, name);
}

static void make_link(place *p, const char *from, const char *name, bool hard)
{
    char a[4096], b[4096];

    path_of(p, from, a);
    path_of(p, name, b);
    assert_int_equal(hard ? link(a, b) : symlink(a, b), 0);
}

static void set_mode(place *p, const char *name, mode_t mode)
{
    char path[4096];

    path_of(p, name, path);
    assert_int_equal(chmod(path, mode), 0);
}

/* The words must be refused, and the file must have the bytes it had. */
static void must_keep(place *p, const char *name, const char *words, const char *error)
{
    char before[64], after[64], path[4096];
    struct stat a, b;
    FILE *f;

    path_of(p, name, path);
    memset(before, 0, sizeof(before));
    memset(after, 0, sizeof(after));
    assert_int_equal(stat(path, &a), 0);
    assert_non_null(f = fopen(path, "rb"));
    (void)!fread(before, 1, sizeof(before), f);
    (void)fclose(f);
    must_refuse(p, words, 2, error);
    assert_int_equal(stat(path, &b), 0);
    assert_true(a.st_ino == b.st_ino && a.st_size == b.st_size);
    assert_non_null(f = fopen(path, "rb"));
    (void)!fread(after, 1, sizeof(after), f);
    (void)fclose(f);
    assert_memory_equal(before, after, sizeof(before));
}

static void a_result_is_never_an_input(void **state)
{
    place *p = *state;

    make_link(p, "net.onnx", "soft.onnx", false);
    make_link(p, "net.onnx", "hard.onnx", true);
    make_npy(p, "y.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    write_file(p, "ann.json", "{}", 2);
    must_keep(p, "net.onnx", "simplify net.onnx net.onnx", "is read by this command");
    must_keep(p, "net.onnx", "simplify net.onnx ./net.onnx --force", "is read by this command");
    must_keep(p, "net.onnx", "simplify net.onnx soft.onnx --force", "the same file as net.onnx");
    must_keep(p, "net.onnx", "simplify soft.onnx hard.onnx --force", "the same file as soft.onnx");
    must_keep(p, "net.onnx", "profile net.onnx --trace net.onnx --force", "is read by this");
    must_keep(p, "ann.json",
              "eval net.onnx --images . --annotations ann.json --results ann.json --force",
              "--results ann.json: it is read by this command");
    must_keep(p, "y.npy", "run net.onnx --input x=y.npy --out . --force", "is read by this");
}

/* Weights beside a network are read as it is. */
static void a_result_is_never_a_network_s_weights(void **state)
{
    place *p = *state;

    make_heavy(p);
    make_link(p, "heavy.onnx.data", "hard.onnx", true);
    make_link(p, "heavy.onnx.data", "y.npy", true);
    make_npy(p, "x.npy", OCT_DTYPE_F32, 2, (int64_t[]){1, 512});
    must_keep(p, "heavy.onnx.data", "profile heavy.onnx --trace heavy.onnx.data --force",
              "heavy.onnx.data: the network's weights are in it");
    must_keep(p, "heavy.onnx.data", "simplify heavy.onnx hard.onnx --force",
              "and hard.onnx was to be written; give the result another name");
    must_keep(p, "heavy.onnx.data", "run heavy.onnx --input x=x.npy --out . --force",
              "y.npy: is the same file as ./heavy.onnx.data");
    assert_int_equal(octet(p, "simplify heavy.onnx out.onnx"), 0);
}

/* A folder of pictures is an input with all that is in it. */
static void files_of_folders_that_are_read_stay(void **state)
{
    place *p = *state;
    char path[4096];

    path_of(p, "img", path);
    assert_int_equal(mkdir(path, 0777), 0);
    write_file(p, "img/a.jpg", "a picture", 9);
    must_keep(p, "img/a.jpg", "eval net.onnx --images img --results img/a.jpg --force",
              "in a folder that this command reads");
}

static void files_of_others_stay_without_force(void **state)
{
    static const char *const words[] = {"simplify net.onnx notes.onnx",
                                        "profile net.onnx --trace notes.onnx",
                                        "eval net.onnx --images /usr --results notes.onnx"};
    place *p = *state;

    write_file(p, "notes.onnx", "my notes", 8);
    write_file(p, "notes.svg", "<svg/>", 6);
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        must_keep(p, "notes.onnx", words[i],
                  "is there already, and octet did not make it; choose another name, or replace it "
                  "with --force");
    must_keep(p, "notes.svg", "inspect net.onnx --graph notes.svg", "with --force");
    assert_int_equal(octet(p, "simplify net.onnx notes.onnx --force"), 0);
    assert_int_equal(octet(p, "inspect notes.onnx"), 0);
}

/* What octet made it makes again without asking, whatever it is. */
static void own_files_are_replaced(void **state)
{
    static const char *const words[] = {
        "simplify net.onnx out.onnx",         "profile net.onnx --runs 1 --trace t.json",
        "inspect net.onnx --graph g.svg",     "inspect net.onnx --graph g.dot",
        "inspect net.onnx --graph g.png",     "inspect net.onnx --graph g.pdf",
        "run net.onnx --input x.npy --out .", "synth --out shapes --count 2 --size 64",
    };
    place *p = *state;

    make_npy(p, "x.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < OCT_COUNT(words); i++)
            if (octet(p, words[i]))
                fail_msg("round %d: octet %s: %s", round, words[i], p->last.err);
}

/* As NumPy writes it. */
static void arrays_of_others_stay(void **state)
{
    static const char theirs[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
        "                                                            \n\0\0\x80?";
    place *p = *state;

    make_npy(p, "x.npy", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    write_file(p, "y.npy", theirs, sizeof(theirs) - 1);
    must_keep(p, "y.npy", "run net.onnx --input x.npy --out .", "octet did not make it");
}

static void read_only_files_stay(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "simplify net.onnx out.onnx"), 0);
    set_mode(p, "out.onnx", 0444);
    must_keep(p, "out.onnx", "simplify net.onnx out.onnx", "is read-only");
    must_keep(p, "out.onnx", "simplify net.onnx out.onnx --force", "is read-only");
    set_mode(p, "out.onnx", 0644);
    assert_int_equal(octet(p, "simplify net.onnx out.onnx"), 0);
}

static void devices_are_sinks(void **state)
{
    place *p = *state;

    assert_int_equal(octet(p, "simplify net.onnx /dev/null"), 0);
    assert_int_equal(octet(p, "profile net.onnx --runs 1 --trace /dev/null"), 0);
    assert_int_equal(access("/dev/null.data", F_OK), -1);
    must_refuse(p, "simplify net.onnx -", 2, "-: is no file name; /dev/stdout is standard");
    must_refuse(p, "profile net.onnx --trace -", 2, "-: is no file name; /dev/stdout is standard");
    assert_int_equal(count_files(p), 1);
    assert_int_equal(octet(p, "simplify net.onnx /dev/stdout >copy.onnx"), 0);
    must_contain(p->last.err, "BatchNormalization"); /* the summary went elsewhere */
    assert_int_equal(octet(p, "inspect copy.onnx"), 0);
}

static void networks_are_written_as_onnx_or_ir(void **state)
{
    place *p = *state;
    struct stat whole, half;
    char path[4096];

    must_refuse(
        p, "simplify net.onnx out.pb", 2,
        "out.pb: octet writes networks as ONNX (a name that ends in .onnx) or as OpenVINO IR");
    assert_int_equal(count_files(p), 1);
    assert_int_equal(octet(p, "simplify net.onnx out.xml"), 0);
    assert_int_equal(count_files(p), 3);
    assert_int_equal(octet(p, "export net.onnx -o half.xml --half"), 0);
    path_of(p, "out.bin", path);
    assert_int_equal(stat(path, &whole), 0);
    path_of(p, "half.bin", path);
    assert_int_equal(stat(path, &half), 0);
    assert_true(half.st_size < whole.st_size);
    must_refuse(p, "export net.onnx -o half.onnx --half", 2, "--half is for OpenVINO IR");
    /* Neither file of a pair may be one that octet did not make. */
    write_file(p, "mine.bin", "not yours", 9);
    must_refuse(p, "export net.onnx -o mine.xml", 2, "mine.bin");
}

/* A14, D11: what a file is, and what to do, instead of "broken protobuf". */
static void wrong_files_are_named(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *answer;
    } cases[] = {
#define CASE(bytes, answer) {bytes, sizeof(bytes) - 1, answer}
        CASE("", "is empty, not an ONNX network; was the download complete?"),
        CASE("\xff\xd8\xff\xe0....JFIF", "is a JPEG picture, not an ONNX network"),
        CASE("\x89PNG\r\n\x1a\n....", "is a PNG picture"),
        CASE("PK\x03\x04....archive/data.pkl....", "is a PyTorch file (.pt, .pth)"),
        CASE("PK\x03\x04....x/archive_format....", "broken zip archive: no directory at its end"),
        CASE("PK\x03\x04....readme.txt", "is a zip archive, not an ONNX network; unpack it"),
        CASE("\x80\x02}q\x01.", "is a Python pickle"),
        CASE("<!DOCTYPE html><html><body>404", "is a web page (HTML)"),
        CASE("\x1f\x8b\x08\0\0\0\0", "is a gzip file"),
        CASE("\x1c\0\0\0TFL3....", "is a TensorFlow Lite network"),
        CASE("<?xml version=\"1.0\"?>\n<net name=\"x\">\n<layers><layer id=\"0\"/>", "broken XML"),
        CASE("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
             "is a pointer of Git LFS, not an ONNX network; fetch the file itself: git lfs pull"),
        CASE("\x08\x01\x12\x0f....saved_model", "is a TensorFlow graph (.pb, SavedModel)"),
        CASE("\x0a\x20\x0a\x05input\x12\x0bPlaceholder....", "is a TensorFlow graph"),
        CASE("\x89HDF\r\n\x1a\n........", "is an HDF5 file, as Keras"),
        CASE("\x20\0\0\0\0\0\0\0{\"weight\":{\"dtype\":\"F32\"", "safetensors"),
        CASE("ftrt........", "is a TensorRT engine"),
        CASE("{\"images\": []}", "is a JSON file"),
        CASE("7767517\n3 3\nInput", "is an ncnn network"),
        CASE("name: \"net\"\nlayer {\n", "is a Caffe network"),
        CASE("not a model", "is a text file, not an ONNX network"),
#undef CASE
    };
    place *p = *state;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        write_file(p, "wrong.onnx", cases[i].bytes, cases[i].n);
        must_refuse(p, "inspect wrong.onnx", 1, cases[i].answer);
    }
}

static void a_network_that_ends_early_is_told(void **state)
{
    place *p = *state;
    char path[4096], bytes[200];
    FILE *f;

    path_of(p, "net.onnx", path);
    assert_non_null(f = fopen(path, "rb"));
    assert_int_equal(fread(bytes, 1, sizeof(bytes), f), sizeof(bytes));
    (void)fclose(f);
    write_file(p, "cut.onnx", bytes, sizeof(bytes));
    must_refuse(p, "inspect cut.onnx", 1, "cut.onnx: the file ends early (200 bytes; ");
    must_contain(p->last.err, "was the download complete?");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_result_is_never_an_input, net_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_result_is_never_a_network_s_weights, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(files_of_folders_that_are_read_stay, net_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(files_of_others_stay_without_force, net_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(own_files_are_replaced, net_setup, place_teardown),
        cmocka_unit_test_setup_teardown(arrays_of_others_stay, net_setup, place_teardown),
        cmocka_unit_test_setup_teardown(read_only_files_stay, net_setup, place_teardown),
        cmocka_unit_test_setup_teardown(devices_are_sinks, net_setup, place_teardown),
        cmocka_unit_test_setup_teardown(networks_are_written_as_onnx_or_ir, net_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(wrong_files_are_named, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(a_network_that_ends_early_is_told, net_setup,
                                        place_teardown),
    };

    if (argc != 2) return 2;
    place_set_program(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
