/* SPDX-License-Identifier: Apache-2.0 */
/* A C++ program that uses the public headers: load, look, compile, run with bound memory, save. */
#include <cstdio>
#include <cstring>
#include <vector>

#include <octet/octet.h>

namespace {

int failed(oct_ctx *ctx, const char *what)
{
    std::fprintf(stderr, "api_cxx: %s: %s\n", what, oct_ctx_error(ctx));
    return 1;
}

int run(oct_ctx *ctx, const oct_plan *plan)
{
    oct_io_info in = {}, out = {};
    oct_run *r = nullptr;

    in.struct_size = out.struct_size = sizeof(oct_io_info);
    if (!oct_plan_input_info(plan, 0, &in) || !oct_plan_output_info(plan, 0, &out))
        return failed(ctx, "no inputs, no outputs");
    std::vector<unsigned char> x(in.size), y(out.size, 0xa5);
    oct_status st = oct_run_new(ctx, plan, &r);
    if (!st) st = oct_run_bind_input(r, in.name, x.data(), x.size());
    if (!st) st = oct_run_bind_output(r, 0, y.data(), y.size());
    if (!st) st = oct_run_execute(r);
    const oct_tensor *t = nullptr;
    if (!st) st = oct_run_output(r, 0, &t);
    const bool same = !st && std::memcmp(oct_tensor_data(t), y.data(), y.size()) == 0;
    if (!st) {
        oct_run_cancel(r, 1);
        if (oct_run_execute(r) != OCT_ERR_CANCELLED) st = OCT_ERR_STATE;
    }
    oct_run_free(r);
    if (st) return failed(ctx, "run");
    return same ? 0 : failed(ctx, "the bound output has other bytes");
}

int work(oct_ctx *ctx, const char *path, const char *copy)
{
    oct_graph *g = nullptr;
    oct_plan *plan = nullptr;
    oct_plan_options po;
    oct_quantize_options qo;

    oct_plan_options_init(&po);
    po.n_threads = 1;
    oct_quantize_options_init(&qo);
    oct_status st = oct_onnx_load(ctx, path, &g);
    if (!st) st = oct_graph_set_metadata(g, "by", "C++");
    if (!st) st = oct_onnx_save(g, copy, nullptr);
    if (!st) st = oct_plan_new(g, &po, &plan);
    const int status = st ? failed(ctx, path) : run(ctx, plan);
    oct_plan_free(plan);
    oct_graph_free(g);
    return status;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    if (oct_version_number() < OCT_VERSION_NUMBER) return 3;
    oct_ctx *ctx = oct_ctx_new(nullptr);
    if (!ctx) return 4;
    const int status = work(ctx, argv[1], argv[2]);
    oct_ctx_free(ctx);
    return status;
}
