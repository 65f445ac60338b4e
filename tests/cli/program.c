/* SPDX-License-Identifier: Apache-2.0 */
/* Running the built program in a folder of its own. */
#include "cli/program.h"

#include <dirent.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "op/op.h"

static const char *program_path; /* set once, by main() */

void place_set_program(const char *path)
{
    program_path = path;
}

int place_setup(void **state)
{
    place *p = calloc(1, sizeof(*p));

    if (!p || !program_path || !realpath(program_path, p->program)) return -1;
    setenv("OCTET_PROGRESS_SECONDS", "100000", 1); /* slow machines say no more than fast ones */
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    strcpy(p->dir, "/tmp/octet-test-XXXXXX");
    if (!mkdtemp(p->dir)) return -1;
    *state = p;
    return 0;
}

static void remove_all(const char *path)
{
    struct dirent *e;
    DIR *d = opendir(path);
    char name[4096];

    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (unlink(name)) remove_all(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

int place_teardown(void **state)
{
    place *p = *state;

    remove_all(p->dir);
    free(p->last.out);
    free(p->last.err);
    free(p);
    return 0;
}

static char *read_all(const char *dir, const char *name, size_t *size)
{
    char path[4096], *text;
    struct stat sb;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (!(f = fopen(path, "rb")) || fstat(fileno(f), &sb)) {
        if (f) fclose(f);
        return NULL;
    }
    text = calloc(1, (size_t)sb.st_size + 1);
    if (text) *size = fread(text, 1, (size_t)sb.st_size, f);
    fclose(f);
    return text;
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int octet(place *p, const char *words)
{
    char command[8192], name[128];
    size_t size = 0;
    int status;

    /* Redirections come first, so that `words` may hold others. */
    snprintf(command, sizeof(command), "cd '%s' && >'%s.out' 2>'%s.err' </dev/null '%s' %s", p->dir,
             p->dir, p->dir, p->program, words);
    status = system(command);
    free(p->last.out);
    free(p->last.err);
    p->last.status = exit_status(status);
    snprintf(name, sizeof(name), "%s.out", p->dir);
    p->last.out = read_all("", name, &size);
    unlink(name);
    snprintf(name, sizeof(name), "%s.err", p->dir);
    p->last.err = read_all("", name, &size);
    unlink(name);
    assert_non_null(p->last.out);
    assert_non_null(p->last.err);
    return p->last.status;
}

int octet_on_terminal(place *p, const char *words, int columns)
{
    struct winsize w = {.ws_row = 24, .ws_col = (unsigned short)columns};
    char command[8192], *text = calloc(1, 1 << 20);
    size_t len = 0;
    int fd, status = 0;
    pid_t pid = forkpty(&fd, NULL, NULL, &w);

    assert_non_null(text);
    assert_true(pid >= 0);
    if (pid == 0) {
        snprintf(command, sizeof(command), "cd '%s' && exec '%s' %s", p->dir, p->program, words);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    for (ssize_t n; len < (1 << 20) - 1; len += (size_t)n)
        if ((n = read(fd, text + len, (1 << 20) - 1 - len)) <= 0) break;
    waitpid(pid, &status, 0);
    close(fd);
    free(p->last.out);
    p->last.out = text;
    p->last.status = exit_status(status);
    return p->last.status;
}

int octet_interrupted(place *p, const char *words, int after_ms, int sig)
{
    char command[8192];
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        snprintf(command, sizeof(command), "cd '%s' && exec '%s' %s >/dev/null 2>&1", p->dir,
                 p->program, words);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    usleep((useconds_t)after_ms * 1000);
    kill(pid, sig);
    waitpid(pid, &status, 0);
    return exit_status(status);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!j) fail_msg("not JSON: %s at line %d:\n%.2000s", error.text, error.line, text);
    return j;
}

json_t *printed_json(place *p)
{
    return parse(p->last.out);
}

json_t *file_json(place *p, const char *name)
{
    size_t size = 0;
    char *text = read_all(p->dir, name, &size);
    json_t *j;

    assert_non_null(text);
    j = parse(text);
    free(text);
    return j;
}

bool exists(place *p, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    return access(path, F_OK) == 0;
}

void write_file(place *p, const char *name, const void *data, size_t size)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_non_null(f = fopen(path, "wb"));
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

int count_files(place *p)
{
    DIR *d = opendir(p->dir);
    int n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

void must_contain(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" is not in:\n%.4000s", part, text);
}

void must_refuse(place *p, const char *words, int status, const char *error)
{
    const int got = octet(p, words);

    if (got != status || p->last.out[0] || !strstr(p->last.err, error))
        fail_msg("octet %s: status %d, printed \"%s\", said \"%s\", not \"%s\"", words, got,
                 p->last.out, p->last.err, error);
}

/* --- models --- */

static oct_value *constant(fixture *f, const char *name, int32_t rank, const int64_t *dims, float v)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, rank, dims);
    oct_tensor *t = NULL;

    assert_ok(f->ctx, oct_tensor_make(f->ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((float *)t->data)[i] = v;
    return oct_value_const(f->g, name, t);
}

static oct_value *node(fixture *f, const oct_op *op, const char *name, const char *out,
                       oct_value *const *in, int32_t n_in)
{
    oct_value *y = oct_value_new(f->g, out, NULL);
    oct_node *n;

    assert_non_null(y);
    n = oct_node_new(f->g, NULL, name, op, in, n_in, &y, 1);
    assert_non_null(n);
    assert_ok(f->ctx, oct_node_infer(n));
    return y;
}

static void save(place *p, fixture *f, const char *name)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_ok(f->ctx, oct_graph_verify(f->g));
    assert_ok(f->ctx, oct_onnx_save(f->g, path, NULL));
}

void make_heavy(place *p)
{
    void *state = NULL;
    oct_onnx_options o;
    char path[4096];
    fixture *f;
    oct_value *in[2], *y;

    assert_int_equal(setup(&state), 0);
    f = state;
    in[0] = graph_input(f, "x", OCT_DTYPE_F32, 2, (int64_t[]){1, 512});
    in[1] = constant(f, "w", 2, (int64_t[]){1, 512}, 0.125f);
    y = node(f, &oct_op_add, "/Add", "y", in, 2);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    oct_onnx_options_init(&o);
    o.external_data = 1;
    snprintf(path, sizeof(path), "%s/heavy.onnx", p->dir);
    assert_ok(f->ctx, oct_onnx_save(f->g, path, &o));
    assert_int_equal(teardown(&state), 0);
}

void make_net(place *p)
{
    void *state = NULL;
    fixture *f;
    oct_value *x, *y, *in[5];

    assert_int_equal(setup(&state), 0);
    f = state;
    x = graph_input(f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, 3, 8, 8});
    in[0] = x;
    in[1] = constant(f, "w", 4, (int64_t[]){4, 3, 3, 3}, 0.125f);
    y = node(f, &oct_op_conv, "/body/conv/Conv", "/body/conv/Conv_output_0", in, 2);
    in[0] = y;
    in[1] = constant(f, "bn.scale", 1, (int64_t[]){4}, 2);
    in[2] = constant(f, "bn.bias", 1, (int64_t[]){4}, 1);
    in[3] = constant(f, "bn.mean", 1, (int64_t[]){4}, 0.5f);
    in[4] = constant(f, "bn.var", 1, (int64_t[]){4}, 1);
    y = node(f, &oct_op_batch_normalization, "/body/bn/BatchNormalization", "/body/bn:0", in, 5);
    y = node(f, &oct_op_relu, "/body/Relu", "/body/Relu_output_0", &y, 1);
    y = node(f, &oct_op_identity, "/body/Identity", "y", &y, 1);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    save(p, f, "net.onnx");
    assert_int_equal(teardown(&state), 0);
}

void make_two(place *p)
{
    void *state = NULL;
    fixture *f;
    oct_value *in[2], *y;

    assert_int_equal(setup(&state), 0);
    f = state;
    in[0] = graph_input(f, "first", OCT_DTYPE_F32, 2, (int64_t[]){-1, 4});
    in[1] = graph_input(f, "second", OCT_DTYPE_F32, 2, (int64_t[]){-1, 4});
    y = node(f, &oct_op_add, "add", "sum", in, 2);
    assert_ok(f->ctx, oct_graph_add_output(f->g, y));
    save(p, f, "two.onnx");
    assert_int_equal(teardown(&state), 0);
}

void make_odd(place *p)
{
    static const char *const names[] = {"a/b", "a:b", "\x1b[31m\ny"};
    void *state = NULL;
    fixture *f;
    oct_value *v;

    assert_int_equal(setup(&state), 0);
    f = state;
    v = graph_input(f, "x", OCT_DTYPE_F32, 1, (int64_t[]){2});
    for (size_t i = 0; i < OCT_COUNT(names); i++)
        v = node(f, &oct_op_relu, "", names[i], &v, 1);
    assert_ok(f->ctx, oct_graph_add_output(f->g, v));
    save(p, f, "odd.onnx");
    assert_int_equal(teardown(&state), 0);
}

void make_npy(place *p, const char *name, oct_dtype dtype, int32_t rank, const int64_t *dims)
{
    const oct_type type = oct_type_make(dtype, rank, dims);
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_tensor *t = NULL;
    char path[4096];

    assert_non_null(ctx);
    assert_ok(ctx, oct_tensor_make(ctx, &type, &t));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        oct_store_f64(dtype, t->data, i, 1, (double[]){1});
    snprintf(path, sizeof(path), "%s/%s", p->dir, name);
    assert_ok(ctx, oct_tensor_save_npy(ctx, t, path));
    oct_tensor_unref(t);
    oct_ctx_free(ctx);
}
