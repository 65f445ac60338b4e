/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins: shared libraries that register operators. Wraps dlopen(). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/ctx.h"
#include "base/mem.h"
#include "base/status.h"
#include "op/custom.h"

#define INIT    "octet_plugin_init"
#define VERSION "octet_plugin_abi"

typedef oct_status (*init_fn)(oct_ctx *ctx);
typedef int32_t (*version_fn)(void);

static void close_library(void *handle)
{
    (void)dlclose(handle);
}

/* POSIX promises that a function's address fits; C has no such cast. */
static bool find(void *handle, const char *name, void *fn, size_t size)
{
    void *p = dlsym(handle, name);

    memcpy(fn, &p, size);
    return p != NULL;
}

static oct_status start(oct_ctx *ctx, const char *path, void *handle, init_fn *init)
{
    version_fn version;

    if (!find(handle, VERSION, &version, sizeof(version)) ||
        !find(handle, INIT, init, sizeof(*init)))
        return oct_fail(ctx, OCT_ERR_FORMAT,
                        "%s: not a plugin of octet: it has no function %s (put "
                        "OCT_PLUGIN_ABI_DEFINE of <octet/op.h> and %s() into it)",
                        path, *init ? VERSION : INIT, INIT);
    if (version() != OCT_PLUGIN_ABI)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                        "%s: compiled for version %d of octet's plugins, this octet has %d; "
                        "compile it anew",
                        path, (int)version(), OCT_PLUGIN_ABI);
    return OCT_OK;
}

oct_status oct_plugin_load(oct_ctx *ctx, const char *path)
{
    OCT_ENTER(ctx);
    const size_t size = strlen(path) + 3;
    char *file = oct_alloc(ctx, size);
    init_fn init = NULL;
    void *handle;
    oct_status st;

    if (!file) return OCT_ERR_MEMORY;
    /* A name without a slash would be looked for in the system's folders. */
    (void)snprintf(file, size, "%s%s", strchr(path, '/') ? "" : "./", path);
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    oct_free(ctx, file);
    if (!handle) return oct_fail(ctx, OCT_ERR_IO, "cannot load plugin: %s", dlerror());
    st = start(ctx, path, handle, &init);
    if (!st) st = oct_custom_keep(ctx, handle, close_library);
    if (st) {
        close_library(handle);
        return st;
    }
    st = init(ctx);
    if (!st) return OCT_OK;
    if (st < OCT_OK || st > OCT_ERR_CANCELLED) st = OCT_ERR_UNSUPPORTED;
    return ctx->error[0] ? oct_fail_at(ctx, st, path)
                         : oct_fail(ctx, st, "%s: " INIT "() failed", path);
}
