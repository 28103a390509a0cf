// The calls that are measured one by one, beside those that the engine itself makes: what each of them does to streams and
// handles, and nothing more.

static int limit_values[16] = {1024, 1 << 20, 8 << 20};
static Stream *default_stream() { return of(nullptr); }
static int copy_and_wait(u64 to, u64 from, size_t bytes) {
    copy(to, from, bytes, default_stream());
    default_stream()->queue->synchronize();
    return OK;
}

API int cuCtxGetLimit(size_t *value, int limit) { *value = limit_values[limit & 15]; return OK; }
API int cuCtxSetLimit(int limit, size_t value) { limit_values[limit & 15] = (int)value; return OK; }
API int cuCtxSetCacheConfig(int) { return OK; }
API int cuCtxResetPersistingL2Cache() { return OK; }
API int cuCtxCreate_v4(void **context, void *, u32, int) { *context = current = &limit_values; return OK; }
API int cuCtxDestroy_v2(void *) { return OK; }
API int cuDevicePrimaryCtxSetFlags_v2(int, u32) { return OK; }
API int cuDeviceCanAccessPeer(int *can, int, int) { *can = 1; return OK; }
API int cuCtxEnablePeerAccess(void *, u32) { return OK; }
API int cuCtxDisablePeerAccess(void *) { return OK; }
API int cuDevicePrimaryCtxGetState(int, u32 *flags, int *active) { *flags = 0; *active = 1; return OK; }

API int cuStreamCreateWithPriority(Stream **stream, u32, int) { *stream = new Stream; return OK; }
API int cuStreamGetPriority(Stream *, int *priority) { *priority = 0; return OK; }
API int cuStreamWriteValue32_v2(Stream *stream, u64 address, u32 value, u32) {
    return stream->push([=] { reinterpret_cast<std::atomic<u32> *>(address)->store(value); });
}
API int cuLaunchHostFunc(Stream *stream, void (*function)(void *), void *data) {
    return stream->push([=] { function(data); });
}
API int cuStreamAddCallback(Stream *stream, void (*function)(Stream *, int, void *), void *data, u32) {
    return stream->push([=] { function(stream, OK, data); });
}
struct Location { int type, id; };
API int cuMemPrefetchAsync_v2(u64, size_t, Location, u32, Stream *stream) { return of(stream)->push([] {}); }
API int cuStreamAttachMemAsync(Stream *stream, u64, size_t, u32) { return stream->push([] {}); }

API int cuMemcpyHtoD_v2(u64 to, const void *from, size_t bytes) { return copy_and_wait(to, (u64)from, bytes); }
API int cuMemcpyDtoH_v2(void *to, u64 from, size_t bytes) { return copy_and_wait((u64)to, from, bytes); }
API int cuMemcpyDtoD_v2(u64 to, u64 from, size_t bytes) { return copy(to, from, bytes, default_stream()); }
API int cuMemcpy(u64 to, u64 from, size_t bytes) { return copy_and_wait(to, from, bytes); }
API int cuMemcpyAsync(u64 to, u64 from, size_t bytes, Stream *stream) { return copy(to, from, bytes, stream); }
API int cuMemcpyPeerAsync(u64 to, void *, u64 from, void *, size_t bytes, Stream *stream) { return copy(to, from, bytes, stream); }
API int cuMemcpyPeer(u64 to, void *, u64 from, void *, size_t bytes) { return copy_and_wait(to, from, bytes); }
API int cuMemsetD32_v2(u64 to, u32 word, size_t words) {
    default_stream()->push([=] { std::fill_n((u32 *)to, words, word); });
    default_stream()->queue->synchronize();
    return OK;
}
API int cuMemsetD8_v2(u64 to, unsigned char byte, size_t bytes) {
    return cuMemsetD8Async(to, byte, bytes, default_stream());
}

API int cuMemAlloc_v2(u64 *address, size_t bytes) {
    may_wait("cuMemAlloc");
    void *memory = nullptr;
    const int status = posix_memalign(&memory, 512, bytes) ? NO_MEMORY : OK;
    *address = (u64)memory;
    return status;
}
API int cuMemAllocManaged(u64 *address, size_t bytes, u32) { return cuMemAlloc_v2(address, bytes); }
// Memory that a stream allocated may be freed so, too.
API int cuMemFree_v2(u64 address) {
    wait_for_all();
    std::lock_guard<std::mutex> lock(memory_mutex);
    auto known = taken.find(address);
    if (known != taken.end()) {
        in_use -= known->second;
        reserved -= known->second;
        taken.erase(known);
    }
    std::free((void *)address);
    return OK;
}
API int cuMemAllocAsync(u64 *address, size_t bytes, Stream *stream) {
    return cuMemAllocFromPoolAsync(address, bytes, nullptr, stream);
}
API int cuMemPoolDestroy(void *) { return OK; }
API int cuMemHostRegister_v2(void *, size_t, u32) { return OK; }
API int cuMemHostUnregister(void *) { return OK; }
API int cuPointerGetAttribute(u32 *value, int, u64) { *value = 2; return OK; }
API int cuMemGetAllocationGranularity(size_t *bytes, const void *, int) { *bytes = 1 << 21; return OK; }
API int cuMemAddressReserve(u64 *address, size_t bytes, size_t, u64, unsigned long long) { return cuMemAlloc_v2(address, bytes); }
API int cuMemAddressFree(u64 address, size_t) { std::free((void *)address); return OK; }
API int cuMemCreate(u64 *handle, size_t, const void *, unsigned long long) { *handle = 7; return OK; }
API int cuMemRelease(u64) { return OK; }
API int cuMemMap(u64, size_t, size_t, u64, unsigned long long) { return OK; }
API int cuMemSetAccess(u64, size_t, const void *, size_t) { return OK; }
API int cuMemUnmap(u64, size_t) { return OK; }

API int cuModuleUnload(void *) { may_wait("cuModuleUnload"); return OK; }
API int cuLibraryLoadData(void **library, const void *, void *, void *, u32, void *, void *, u32) { *library = &limit_values; return OK; }
API int cuLibraryUnload(void *) { return OK; }
// A kernel is launched by either kind of handle.
API int cuLibraryGetKernel(Function **kernel, void *, const char *name) { *kernel = new Function{name}; return OK; }
API int cuKernelGetFunction(Function **function, Function *kernel) { *function = kernel; return OK; }
API int cuFuncLoad(Function *) { return OK; }
API int cuFuncSetAttribute(Function *, int, int) { return OK; }
API int cuFuncSetCacheConfig(Function *, int) { return OK; }
API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *, int, size_t) { *blocks = 1; return OK; }
API int cuLaunchCooperativeKernel(Function *function, u32 x, u32 y, u32 z, u32 a, u32 b, u32 c, u32 shared, Stream *stream, void **arguments) {
    return cuLaunchKernel(function, x, y, z, a, b, c, shared, stream, arguments, nullptr);
}

API int cuGraphCreate(Graph **graph, u32) { *graph = new Graph; return OK; }
API int cuGraphAddKernelNode_v2(void **node, Graph *graph, const void *, size_t, const void *) {
    graph->work.push_back([] {});
    *node = graph;
    return OK;
}
API int cuGraphExecUpdate_v2(Graph *, Graph *, void *) { return OK; }
API int cuGraphExecKernelNodeSetParams_v2(Graph *, void *, const void *) { return OK; }
