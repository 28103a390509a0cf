// A CUDA driver without a GPU: what the CUDA engine asks of the driver, of NVRTC and of cuBLASLt, on threads of the host.
//
// It tests the engine's own work (order, frees, captures, gates, failures, locks) where there is no GPU, also under
// ThreadSanitizer. It tests no kernel: those of `kernels/` are replaced by loops under their names.
//
// A stream is a thread with a queue of at most 1,024 entries, as long as a launch behind them blocks. Freed memory is
// overwritten, so that a use after the free gives other values. What breaks a capture on a real driver breaks it here: to wait for
// or to ask a stream that captures, and to wait for the context, also where the capture begins meanwhile. A copy of pageable
// memory that waits for its stream keeps other calls from the stream, as a real driver's does.
//
// A real driver may wait for all streams in calls that say nothing of it. SIMULATOR_WAITS names the calls that do so here,
// by a part of their names, with commas between: `cuMemHostAlloc,cuModule`. Meanwhile they keep other calls out, as by a lock
// of the driver. An engine that makes none of them while a gate is closed passes the same tests.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
typedef uint64_t u64;
typedef uint32_t u32;
typedef std::function<void()> Work;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, CAPTURING = 900, INVALIDATED = 901 };

struct Mark {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    std::chrono::steady_clock::time_point at;
    void reach() {
        std::lock_guard<std::mutex> lock(mutex);
        reached = true;
        at = std::chrono::steady_clock::now();
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return reached; });
    }
    bool is_reached() {
        std::lock_guard<std::mutex> lock(mutex);
        return reached;
    }
};

// A graph is made ready in the order of a stream, and one graph after the other: behind a closed gate it keeps back the next.
struct Graph {
    std::vector<Work> work;
    std::shared_ptr<Mark> ready;
};
static std::mutex ready_mutex;
static std::shared_ptr<Mark> latest_ready;

struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> work;
    u64 pushed = 0, done = 0, stuck = 0;
    bool closed = false;

    void run() {
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return closed || !work.empty(); });
            if (work.empty()) return;
            Work next = std::move(work.front());
            lock.unlock();
            next();
            next = nullptr;
            lock.lock();
            work.pop_front();
            ++done;
            changed.notify_all();
        }
    }
    void push(Work next) {
        std::unique_lock<std::mutex> lock(mutex);
        ++stuck;
        changed.wait(lock, [&] { return work.size() < 1024; });
        --stuck;
        work.push_back(std::move(next));
        ++pushed;
        changed.notify_all();
    }
    void synchronize() {
        std::unique_lock<std::mutex> lock(mutex);
        const u64 target = pushed;
        changed.wait(lock, [&] { return done >= target; });
    }
    // As with a real driver, a question waits with a call that waits for room.
    bool is_complete() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return stuck == 0; });
        return done == pushed;
    }
};

// Of all streams, also of destroyed ones whose work goes on.
static std::mutex queues_mutex;
static std::vector<std::weak_ptr<Queue>> queues;

static void wait_for_all() {
    std::vector<std::shared_ptr<Queue>> all;
    {
        std::lock_guard<std::mutex> lock(queues_mutex);
        for (auto &queue : queues)
            if (auto live = queue.lock()) all.push_back(std::move(live));
    }
    for (auto &queue : all) queue->synchronize();
}

// When the process ends a driver waits for all streams. From then on it is gone, also for other threads.
static std::atomic<bool> ended{false};
static void end() {
    wait_for_all();
    ended = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// Held by a call that waits for all streams, and passed by those that enqueue or wait.
static std::mutex driver_mutex;
static void pass() {
    if (ended) std::abort();
    std::lock_guard<std::mutex> lock(driver_mutex);
}

// At the head of calls that may wait for all streams: see above.
static void may_wait(const char *call) {
    static const char *const waits = std::getenv("SIMULATOR_WAITS");
    if (!waits) return;
    std::lock_guard<std::mutex> lock(driver_mutex);
    for (std::string rest = waits; !rest.empty();) {
        const size_t end = rest.find(',');
        const std::string part = rest.substr(0, end);
        rest = end == std::string::npos ? "" : rest.substr(end + 1);
        if (!part.empty() && std::string(call).find(part) != std::string::npos) return wait_for_all();
    }
}

// A driver keeps streams and executable graphs in memory of its own; to take more of it waits for all streams, and keeps other
// calls out. What is destroyed gives its place back.
static int places = 15, placed = 0;
static void take_place() {
    std::lock_guard<std::mutex> lock(driver_mutex);
    if (++placed <= places) return;
    places += 43;
    wait_for_all();
}
static void give_place() {
    std::lock_guard<std::mutex> lock(driver_mutex);
    --placed;
}

static thread_local void *current = nullptr;

struct Stream {
    void *const context = current;
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    std::mutex mutex;
    std::unique_ptr<Graph> capture;
    bool spoiled = false;
    // Kept by a call that waits for the stream, and passed by whatever else enqueues on it, or asks.
    std::mutex waiting;

    Stream() {
        std::thread([queue = queue] { queue->run(); }).detach();
        std::lock_guard<std::mutex> lock(queues_mutex);
        queues.erase(std::remove_if(queues.begin(), queues.end(), [](auto &queue) { return queue.expired(); }), queues.end());
        queues.push_back(queue);
    }
    ~Stream() {
        std::lock_guard<std::mutex> lock(queue->mutex);
        queue->closed = true;
        queue->changed.notify_all();
    }
    void pass_waiting() { std::lock_guard<std::mutex> lock(waiting); }
    int push(Work next) {
        pass();
        pass_waiting();
        return enqueue(std::move(next));
    }
    int enqueue(Work next) {
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (capture) {
                capture->work.push_back(std::move(next));
                return OK;
            }
        }
        queue->push(std::move(next));
        return OK;
    }
    // Whether a call may be made that a capture does not allow.
    bool plain() {
        std::lock_guard<std::mutex> lock(mutex);
        if (capture) spoiled = true;
        return !capture;
    }
};

// The legacy default stream has a handle that is no address. It is ordered against no other here.
static Stream *of(Stream *stream) {
    static Stream legacy;
    return (u64)stream <= 1 ? &legacy : stream;
}

struct Event {
    std::mutex mutex;
    std::shared_ptr<Mark> latest;
    std::shared_ptr<Mark> mark() {
        std::lock_guard<std::mutex> lock(mutex);
        return latest;
    }
};

// Memory: pieces of one size are used again, as a pool does.
static std::mutex memory_mutex;
static std::map<u64, size_t> taken;
static std::multimap<size_t, u64> pieces;
static size_t in_use = 0, reserved = 0;
static const size_t TOTAL = (size_t)1 << 32;

static int context_object;

// SIMULATOR_DEVICES says how many there are: one, where it says nothing. Their memory is that of the host.
static int device_count() {
    static const char *const count = std::getenv("SIMULATOR_DEVICES");
    return count ? std::atoi(count) : 1;
}
static int context_objects[16];

API int cuInit(u32) {
    static const int registered = std::atexit(end);
    return registered;
}
// One that does not tell the parameters of kernels yet.
API int cuDriverGetVersion(int *version) { *version = 12030; return OK; }
API int cuDeviceGetCount(int *count) { *count = device_count(); return OK; }
API int cuDeviceGet(int *device, int number) { *device = number; return number < device_count() ? OK : INVALID; }
API int cuDeviceGetName(char *name, int len, int) { strncpy(name, "Simulated driver", len); return OK; }
API int cuDeviceGetPCIBusId(char *name, int len, int device) { snprintf(name, len, "0000:%02x:00.0", device); return OK; }
API int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = TOTAL; return OK; }
API int cuDeviceGetAttribute(int *value, int attribute, int) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 4 : 1;
    return OK;
}
// To make one takes time; a real driver takes longer.
API int cuDevicePrimaryCtxRetain(void **context, int device) {
    static std::once_flag made[16];
    std::call_once(made[device & 15], [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
    *context = &context_objects[device & 15];
    return OK;
}
API int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
API int cuCtxGetCurrent(void **context) { *context = current; return OK; }
API int cuCtxSetCurrent(void *context) { current = context; return OK; }
// The flags of the one context; SIMULATOR_KEEPS_FLAGS has a driver that takes others and keeps to its own.
static std::atomic<u32> context_flags{0};
API int cuCtxGetFlags(u32 *flags) { *flags = context_flags; return OK; }
API int cuCtxSetFlags(u32 flags) {
    if (!std::getenv("SIMULATOR_KEEPS_FLAGS")) context_flags = flags;
    return OK;
}
API int cuGetErrorString(int, const char **words) { *words = "of the simulated driver"; return OK; }

API int cuStreamCreate(Stream **stream, u32) { may_wait("cuStreamCreate"); take_place(); *stream = new Stream; return OK; }
API int cuStreamDestroy_v2(Stream *stream) { may_wait("cuStreamDestroy"); give_place(); delete stream; return OK; }
API int cuStreamGetCtx(Stream *stream, void **context) {
    *context = of(stream) == stream ? stream->context : current;
    return OK;
}
API int cuStreamQuery(Stream *stream) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    stream->pass_waiting();
    return stream->queue->is_complete() ? OK : NOT_READY;
}
API int cuStreamSynchronize(Stream *stream) {
    stream = of(stream);
    pass();
    if (!stream->plain()) return CAPTURING;
    stream->queue->synchronize();
    return OK;
}
static std::mutex captures_mutex;
static std::set<Stream *> captures;
static int context_waits = 0;
API int cuStreamBeginCapture_v2(Stream *stream, int) {
    std::lock_guard<std::mutex> among(captures_mutex);
    std::lock_guard<std::mutex> lock(stream->mutex);
    if (stream->capture) return CAPTURING;
    stream->capture = std::make_unique<Graph>();
    stream->spoiled = context_waits > 0;
    captures.insert(stream);
    return OK;
}
API int cuStreamEndCapture(Stream *stream, Graph **graph) {
    std::lock_guard<std::mutex> among(captures_mutex);
    captures.erase(stream);
    std::lock_guard<std::mutex> lock(stream->mutex);
    *graph = nullptr;
    if (!stream->capture) return INVALID;
    std::unique_ptr<Graph> captured = std::move(stream->capture);
    if (stream->spoiled) return INVALIDATED;
    *graph = captured.release();
    return OK;
}
API int cuStreamIsCapturing(Stream *stream, int *status) {
    stream = of(stream);
    std::lock_guard<std::mutex> lock(stream->mutex);
    *status = stream->capture ? 1 : 0;
    return OK;
}
API int cuCtxSynchronize() {
    {
        std::lock_guard<std::mutex> among(captures_mutex);
        for (Stream *stream : captures) stream->plain();
        if (!captures.empty()) return CAPTURING;
        ++context_waits;
    }
    may_wait("cuCtxSynchronize");
    wait_for_all();
    std::lock_guard<std::mutex> among(captures_mutex);
    --context_waits;
    return OK;
}
API int cuGraphInstantiateWithFlags(Graph **made, Graph *graph, unsigned long long) { may_wait("cuGraphInstantiate"); take_place(); *made = new Graph(*graph); return OK; }
API int cuGraphDestroy(Graph *graph) { delete graph; return OK; }
API int cuGraphExecDestroy(Graph *graph) { may_wait("cuGraphExecDestroy"); give_place(); delete graph; return OK; }
API int cuGraphUpload(Graph *graph, Stream *stream) {
    if (!stream->plain()) return CAPTURING;
    may_wait("cuGraphUpload");
    auto ready = std::make_shared<Mark>();
    std::shared_ptr<Mark> before;
    {
        std::lock_guard<std::mutex> lock(ready_mutex);
        before = std::exchange(latest_ready, ready);
    }
    graph->ready = ready;
    return stream->push([before, ready] {
        if (before) before->wait();
        ready->reach();
    });
}
API int cuGraphLaunch(Graph *graph, Stream *stream) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    return stream->push([work = graph->work, ready = graph->ready] {
        if (ready) ready->wait();
        for (const Work &each : work) each();
    });
}
API int cuStreamWaitValue32_v2(Stream *stream, u64 address, u32 value, u32) {
    stream = of(stream);
    if (std::getenv("SIMULATOR_NO_STREAM_WAIT")) return 801;
    if (!stream->plain()) return CAPTURING;
    return stream->push([=] {
        auto *word = reinterpret_cast<std::atomic<u32> *>(address);
        while ((int)(word->load() - value) < 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
}

API int cuEventCreate(Event **event, u32) { may_wait("cuEventCreate"); *event = new Event; return OK; }
API int cuEventDestroy_v2(Event *event) { delete event; return OK; }
API int cuEventRecord(Event *event, Stream *stream) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    auto mark = std::make_shared<Mark>();
    stream->push([mark] { mark->reach(); });
    std::lock_guard<std::mutex> lock(event->mutex);
    event->latest = mark;
    return OK;
}
API int cuStreamWaitEvent(Stream *stream, Event *event, u32) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    auto mark = event->mark();
    return mark ? stream->push([mark] { mark->wait(); }) : OK;
}
API int cuEventQuery(Event *event) {
    auto mark = event->mark();
    return !mark || mark->is_reached() ? OK : NOT_READY;
}
API int cuEventSynchronize(Event *event) {
    pass();
    auto mark = event->mark();
    if (mark) mark->wait();
    return OK;
}
API int cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    auto from = start->mark(), to = end->mark();
    if (!from || !to) return INVALID;
    if (!from->is_reached() || !to->is_reached()) return NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return OK;
}

API int cuMemPoolCreate(void **pool, const void *) { *pool = &context_object; return OK; }
API int cuMemPoolSetAttribute(void *, int, void *) { return OK; }
API int cuMemPoolGetAttribute(void *, int attribute, void *value) {
    std::lock_guard<std::mutex> lock(memory_mutex);
    *(u64 *)value = attribute == 5 ? reserved : in_use;
    return OK;
}
API int cuMemPoolTrimTo(void *, size_t) {
    may_wait("cuMemPoolTrimTo");
    std::lock_guard<std::mutex> lock(memory_mutex);
    for (auto &[bytes, address] : pieces) {
        reserved -= bytes;
        std::free((void *)address);
    }
    pieces.clear();
    return OK;
}
API int cuMemGetInfo_v2(size_t *free, size_t *total) {
    std::lock_guard<std::mutex> lock(memory_mutex);
    *total = TOTAL;
    *free = TOTAL - reserved;
    return OK;
}
API int cuMemAllocFromPoolAsync(u64 *address, size_t bytes, void *, Stream *stream) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    std::unique_lock<std::mutex> lock(memory_mutex);
    if (pieces.find(bytes) == pieces.end()) {
        // What is freed meanwhile may do.
        lock.unlock();
        may_wait("cuMemAllocFromPoolAsync");
        lock.lock();
    }
    auto known = pieces.find(bytes);
    if (known != pieces.end()) {
        *address = known->second;
        pieces.erase(known);
    } else {
        if (bytes > TOTAL || reserved + bytes > TOTAL) return NO_MEMORY;
        void *piece = nullptr;
        if (posix_memalign(&piece, 512, bytes)) return NO_MEMORY;
        reserved += bytes;
        *address = (u64)piece;
    }
    in_use += bytes;
    taken[*address] = bytes;
    return OK;
}
API int cuMemFreeAsync(u64 address, Stream *stream) {
    stream = of(stream);
    if (!stream->plain()) return CAPTURING;
    return stream->push([=] {
        std::lock_guard<std::mutex> lock(memory_mutex);
        auto known = taken.find(address);
        if (known == taken.end()) std::abort();
        memset((void *)address, 0xdd, known->second);
        in_use -= known->second;
        pieces.emplace(known->second, address);
        taken.erase(known);
    });
}
static std::map<u64, size_t> page_locked;
API int cuMemHostAlloc(void **memory, size_t bytes, u32) {
    may_wait("cuMemHostAlloc");
    if (posix_memalign(memory, 4096, bytes)) return NO_MEMORY;
    std::lock_guard<std::mutex> lock(memory_mutex);
    page_locked[(u64)*memory] = bytes;
    return OK;
}
API int cuMemFreeHost(void *memory) {
    may_wait("cuMemFreeHost");
    {
        std::lock_guard<std::mutex> lock(memory_mutex);
        page_locked.erase((u64)memory);
    }
    std::free(memory);
    return OK;
}
static bool is_page_locked(u64 address) {
    std::lock_guard<std::mutex> lock(memory_mutex);
    auto above = page_locked.upper_bound(address);
    return above != page_locked.begin() && address < std::prev(above)->first + std::prev(above)->second;
}
API int cuMemHostGetDevicePointer_v2(u64 *address, void *memory, u32) { *address = (u64)memory; return OK; }
static int copy(u64 to, u64 from, size_t bytes, Stream *stream) {
    stream = of(stream);
    return stream->push([=] { memcpy((void *)to, (const void *)from, bytes); });
}
API int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, Stream *stream) { return copy(to, from, bytes, stream); }
// A copy that has come when the call returns, which keeps other calls from the stream as long.
static int copy_in_call(u64 to, u64 from, size_t bytes, Stream *stream) {
    stream = of(stream);
    pass();
    std::lock_guard<std::mutex> lock(stream->waiting);
    const int status = stream->enqueue([=] { memcpy((void *)to, (const void *)from, bytes); });
    if (status == OK) stream->queue->synchronize();
    return status;
}
// Of pageable memory, up to 1 MiB are copied aside before the call returns.
API int cuMemcpyHtoDAsync_v2(u64 to, const void *from, size_t bytes, Stream *stream) {
    stream = of(stream);
    if (is_page_locked((u64)from)) return copy(to, (u64)from, bytes, stream);
    if (bytes > (1 << 20)) return copy_in_call(to, (u64)from, bytes, stream);
    return stream->push([to, aside = std::string((const char *)from, bytes)] { memcpy((void *)to, aside.data(), aside.size()); });
}
API int cuMemcpyDtoHAsync_v2(void *to, u64 from, size_t bytes, Stream *stream) {
    return is_page_locked((u64)to) ? copy((u64)to, from, bytes, stream) : copy_in_call((u64)to, from, bytes, stream);
}
API int cuMemsetD8Async(u64 to, unsigned char byte, size_t bytes, Stream *stream) {
    stream = of(stream);
    return stream->push([=] { memset((void *)to, byte, bytes); });
}

// Kernels, by their names.
struct Function {
    std::string name;
};
API int cuModuleLoadData(void **module, const void *) { may_wait("cuModuleLoadData"); *module = &context_object; return OK; }
API int cuModuleGetFunction(Function **function, void *, const char *name) { may_wait("cuModuleGetFunction"); *function = new Function{name}; return OK; }
API int cuFuncGetAttribute(int *value, int, Function *) { *value = 32; return OK; }
// Every module is that of `spin` to one who asks for its kernels. They are loaded with it, as far as anybody can tell.
API int cuModuleEnumerateFunctions(Function **functions, u32, void *) { functions[0] = new Function{"spin"}; return OK; }
API int cuFuncIsLoaded(int *state, Function *) { *state = 0; return OK; }

static float half_to_float(uint16_t bits) { _Float16 x; memcpy(&x, &bits, 2); return (float)x; }
static uint16_t float_to_half(float x) { _Float16 y = (_Float16)x; uint16_t bits; memcpy(&bits, &y, 2); return bits; }
static float bf16_to_float(uint16_t bits) { u32 word = (u32)bits << 16; float x; memcpy(&x, &word, 4); return x; }
static uint16_t float_to_bf16(float x) {
    u32 bits; memcpy(&bits, &x, 4);
    return (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}
enum Type { FP16, BF16, FP32, U8, I64 };
static const size_t SIZE[] = {2, 2, 4, 1, 8};
static double load(u64 from, u64 i, Type type) {
    switch (type) {
    case FP16: return half_to_float(((const uint16_t *)from)[i]);
    case BF16: return bf16_to_float(((const uint16_t *)from)[i]);
    case FP32: return ((const float *)from)[i];
    case U8: return ((const uint8_t *)from)[i];
    default: return (double)((const int64_t *)from)[i];
    }
}
static void store(u64 to, u64 i, Type type, float x) {
    switch (type) {
    case FP16: ((uint16_t *)to)[i] = float_to_half(x); break;
    case BF16: ((uint16_t *)to)[i] = float_to_bf16(x); break;
    default: ((float *)to)[i] = x;
    }
}
static bool starts(const std::string &name, const char *with) { return name.rfind(with, 0) == 0; }
static Type type_of(const std::string &name) {
    const std::string ending = name.substr(name.rfind('_') + 1);
    return ending == "fp16" ? FP16 : ending == "bf16" ? BF16 : ending == "fp32" ? FP32 : ending == "u8" ? U8 : I64;
}
struct Keys { u32 of_round[10][2]; };
static void philox(const Keys &keys, u64 sequence, u64 block, u32 out[4]) {
    u32 x = (u32)block, y = (u32)(block >> 32), z = (u32)sequence, w = (u32)(sequence >> 32);
    for (int round = 0; round < 10; ++round) {
        const u64 first = (u64)0xD2511F53u * x, second = (u64)0xCD9E8D57u * z;
        x = (u32)(second >> 32) ^ y ^ keys.of_round[round][0];
        y = (u32)second;
        z = (u32)(first >> 32) ^ w ^ keys.of_round[round][1];
        w = (u32)first;
    }
    out[0] = x; out[1] = y; out[2] = z; out[3] = w;
}
static double uniform(u32 word) { return (double)(((float)word + 0.5f) * 2.3283064365386963e-10f); }
static const u64 TILE = 8192, GROUP = 256;

template <typename T> static T argument(void **arguments, int at) { T value; memcpy(&value, arguments[at], sizeof(T)); return value; }

// The device's clock: another zero than the host's.
static u64 timer() {
    return 1000000007 + (u64)std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static Work work_of(const std::string &name, u32 blocks, void **a) {
    const Type type = type_of(name);
    auto word = [&](int at) { return argument<u64>(a, at); };
    if (name == "fill") {
        const u64 out = word(0), bytes = word(1), pattern = word(2);
        return [=] { for (u64 i = 0; i < bytes; ++i) ((uint8_t *)out)[i] = (uint8_t)(pattern >> (8 * ((out + i) & 7))); };
    }
    if (starts(name, "affine")) {
        const u64 x = word(0), out = word(1), n = word(2);
        const float scale = argument<float>(a, 4), shift = argument<float>(a, 5);
        return [=] { for (u64 i = 0; i < n; ++i) store(out, i, type, fmaf((float)load(x, i, type), scale, shift)); };
    }
    if (starts(name, "add") || starts(name, "subtract") || starts(name, "multiply")) {
        const u64 p = word(0), q = word(1), out = word(2), n = word(3);
        const char kind = name[0];
        return [=] {
            for (u64 i = 0; i < n; ++i) {
                const float l = (float)load(p, i, type), r = (float)load(q, i, type);
                store(out, i, type, kind == 'a' ? l + r : kind == 's' ? l - r : l * r);
            }
        };
    }
    if (starts(name, "greater")) {
        const u64 x = word(0), out = word(1), n = word(2);
        const float threshold = argument<float>(a, 4);
        return [=] { for (u64 i = 0; i < n; ++i) ((uint8_t *)out)[i] = load(x, i, type) > threshold; };
    }
    if (starts(name, "sum")) {
        const u64 x = word(0), out = word(1), n = word(2);
        return [=] { double sum = 0; for (u64 i = 0; i < n; ++i) sum += load(x, i, type); *(float *)out = (float)sum; };
    }
    if (starts(name, "any")) {
        const u64 x = word(0), out = word(1), n = word(2);
        return [=] {
            bool any = false;
            for (u64 i = 0; i < n && !any; ++i) any = load(x, i, type) != 0;
            reinterpret_cast<std::atomic<uint8_t> *>(out)->store(any);
        };
    }
    if (starts(name, "normal")) {
        const u64 out = word(0), n = word(1), sequence = word(3);
        const Keys keys = argument<Keys>(a, 2);
        return [=] {
            for (u64 i = 0; i < n; ++i) {
                u32 words[4];
                philox(keys, sequence, i / 4, words);
                const u32 radius = words[i % 4 / 2 * 2], angle = words[i % 4 / 2 * 2 + 1];
                const double r = sqrt(-2 * log(uniform(radius))), turn = 2 * M_PI * uniform(angle);
                store(out, i, type, (float)(i % 2 == 0 ? r * cos(turn) : r * sin(turn)));
            }
        };
    }
    if (starts(name, "mark_nonzero")) {
        const u64 x = word(0), n = word(1), marks = word(2), counts = word(3), sums = word(4), total = word(6);
        return [=] {
            int64_t all = 0;
            memset((void *)marks, 0, blocks * TILE / 8);
            for (u64 g = 0; g * GROUP < blocks; ++g) ((u32 *)sums)[g] = 0;
            for (u64 t = 0; t < blocks; ++t) {
                u32 count = 0;
                for (u64 i = t * TILE; i < n && i < (t + 1) * TILE; ++i)
                    if (load(x, i, type) != 0) {
                        ((u32 *)marks)[i / 32] |= 1u << (i % 32);
                        ++count;
                    }
                ((u32 *)counts)[t] = count;
                ((u32 *)sums)[t / GROUP] += count;
                all += count;
            }
            reinterpret_cast<std::atomic<int64_t> *>(total)->store(all);
        };
    }
    if (name == "positions") {
        const u64 marks = word(0), to = word(3);
        return [=] {
            u64 at = 0;
            for (u64 i = 0; i < blocks * TILE; ++i)
                if (((const u32 *)marks)[i / 32] >> (i % 32) & 1) ((int64_t *)to)[at++] = (int64_t)i;
        };
    }
    if (starts(name, "gather")) {
        const size_t size = name.substr(name.rfind('_') + 1) == "16" ? 2 : 4;
        const u64 x = word(0), numbers = word(1), out = word(2), rows_out = word(3), rows_in = word(4), width = word(5);
        const u64 fault = word(6), ticket = word(7);
        return [=] {
            for (u64 r = 0; r < rows_out; ++r) {
                const int64_t row = ((const int64_t *)numbers)[r];
                uint8_t *to = (uint8_t *)out + r * width * size;
                if (row >= 0 && (u64)row < rows_in) {
                    memcpy(to, (const uint8_t *)x + row * width * size, width * size);
                    continue;
                }
                memset(to, 0, width * size);
                auto *words = reinterpret_cast<std::atomic<u64> *>(fault);
                if (words[0].load() != 0 && words[3].load() != ticket) continue;
                words[1].store((u64)row);
                words[2].store(rows_in);
                words[3].store(ticket);
                words[0].store(1);
            }
        };
    }
    if (name == "spin") {
        const u64 nanoseconds = word(0);
        return [=] {
            const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
            while (std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(5));
        };
    }
    if (name == "spin_and_mark") {
        const u64 nanoseconds = word(0), flag = word(1);
        const u32 value = argument<u32>(a, 2);
        return [=] {
            const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
            while (std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(5));
            reinterpret_cast<u64 *>(flag)[1] = timer();
            reinterpret_cast<std::atomic<u32> *>(flag)->store(value);
        };
    }
    if (name == "tell_time") {
        const u64 flag = word(0), limit = word(3);
        const u32 first = argument<u32>(a, 1), rounds = argument<u32>(a, 2);
        return [=] {
            auto *asked = reinterpret_cast<std::atomic<u32> *>(flag);
            auto *told = reinterpret_cast<std::atomic<u64> *>(flag) + 1;
            told->store(1);
            for (u32 round = 0; round < rounds; ++round) {
                const u64 start = timer();
                while ((int)(asked->load() - (first + round)) < 0)
                    if (timer() - start > limit) return;
                told->store(timer());
            }
        };
    }
    if (name == "spin_in_halves") return work_of("spin", blocks, a);
    if (name == "transfer") {
        const u64 from = word(0), to = word(1), bytes = word(2);
        return [=] { memcpy((void *)to, (const void *)from, bytes); };
    }
    if (name == "hold") {
        const u64 flag = word(0);
        const u32 target = argument<u32>(a, 1);
        return [=] {
            auto *word = reinterpret_cast<std::atomic<u32> *>(flag);
            while ((int)(word->load() - target) < 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
        };
    }
    return nullptr;
}
struct Config {
    u32 grid[3], block[3], shared;
    Stream *stream;
    void *attributes;
    u32 count;
};
API int cuLaunchKernelEx(const Config *config, Function *function, void **arguments, void **) {
    Work work = work_of(function->name, config->grid[0], arguments);
    return work ? of(config->stream)->push(std::move(work)) : NOT_FOUND;
}
API int cuLaunchKernel(Function *function, u32 x, u32, u32, u32, u32, u32, u32, Stream *stream, void **arguments, void **) {
    Work work = work_of(function->name, x, arguments);
    return work ? of(stream)->push(std::move(work)) : NOT_FOUND;
}

// NVRTC: an image of nothing.
API int nvrtcVersion(int *major, int *minor) { *major = 0; *minor = 0; return 0; }
API int nvrtcCreateProgram(void **program, const char *, const char *, int, const char *const *, const char *const *) { *program = &context_object; return 0; }
API int nvrtcCompileProgram(void *, int, const char *const *) { return 0; }
API int nvrtcDestroyProgram(void **) { return 0; }
API int nvrtcGetCUBINSize(void *, size_t *size) { *size = 4; return 0; }
API int nvrtcGetCUBIN(void *, char *image) { memcpy(image, "\x7f" "ELF", 4); return 0; }
API int nvrtcGetProgramLogSize(void *, size_t *size) { *size = 0; return 0; }
API int nvrtcGetProgramLog(void *, char *) { return 0; }

// cuBLASLt: one algorithm, by columns.
struct Layout { int type; u64 rows, columns; int64_t stride; };
struct Result { u64 algorithm[8]; size_t workspace; int state; float waves; int unused[4]; };
API int cublasLtCreate(void **handle) { *handle = &context_object; return 0; }
API size_t cublasLtGetVersion() { return 130000; }
API const char *cublasLtGetStatusString(int) { return "of the simulated library"; }
API int cublasLtMatmulDescCreate(void **desc, int, int) { *desc = &context_object; return 0; }
API int cublasLtMatmulDescDestroy(void *) { return 0; }
API int cublasLtMatrixLayoutCreate(Layout **layout, int type, u64 rows, u64 columns, int64_t stride) { *layout = new Layout{type, rows, columns, stride}; return 0; }
API int cublasLtMatrixLayoutDestroy(Layout *layout) { delete layout; return 0; }
API int cublasLtMatmulPreferenceCreate(void **preference) { *preference = &context_object; return 0; }
API int cublasLtMatmulPreferenceDestroy(void *) { return 0; }
API int cublasLtMatmulPreferenceSetAttribute(void *, int, const void *, size_t) { return 0; }
// A library registers what takes its tables away when it first needs them: later than all that was there when it was loaded.
static std::atomic<bool> tables_gone{false};
static void take_tables_away() { tables_gone = true; }

API int cublasLtMatmulAlgoGetHeuristic(void *, void *, Layout *, Layout *, Layout *, Layout *, void *, int, Result *results, int *count) {
    static const int registered = std::atexit(take_tables_away);
    for (int look = 0; look < 20 && registered == 0; ++look) {
        if (tables_gone) std::abort();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    results[0] = Result{};
    *count = 1;
    return 0;
}
API int cublasLtMatmul(void *, void *, const void *, u64 a, Layout *first, u64 b, Layout *second, const void *, u64, Layout *, u64 out, Layout *, const void *, u64, size_t, Stream *stream) {
    const Layout l = *first, r = *second;
    const Type type = l.type == 2 ? FP16 : l.type == 14 ? BF16 : FP32;
    return of(stream)->push([=] {
        for (u64 column = 0; column < r.columns; ++column)
            for (u64 row = 0; row < l.rows; ++row) {
                float sum = 0;
                for (u64 k = 0; k < l.columns; ++k) sum += (float)load(a, k * l.rows + row, type) * (float)load(b, column * r.rows + k, type);
                store(out, column * l.rows + row, type, sum);
            }
    });
}

#include "calls.hpp"

// NCCL: ranks of one thread. What a group has is enqueued at its end, and waits on each stream until all ranks have come.
struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    size_t ranks, arrived = 0, left = 0;
    std::vector<const float *> from;
};
struct Rank { int number; size_t ranks; };
struct Contribution { const float *from; float *to; size_t count; Rank *rank; Stream *stream; };
static thread_local std::vector<Contribution> group;
API int ncclGetVersion(int *version) { *version = 22803; return OK; }
API const char *ncclGetErrorString(int) { return "of the simulated library"; }
API int ncclCommInitAll(Rank **ranks, int count, const int *) {
    for (int number = 0; number < count; ++number) ranks[number] = new Rank{number, (size_t)count};
    return OK;
}
API int ncclCommDestroy(Rank *rank) { delete rank; return OK; }
API int ncclGroupStart() { group.clear(); return OK; }
API int ncclAllReduce(const float *from, float *to, size_t count, int, int, Rank *rank, Stream *stream) {
    group.push_back({from, to, count, rank, stream});
    return OK;
}
API int ncclGroupEnd() {
    auto meeting = std::make_shared<Meeting>();
    meeting->ranks = group.size();
    for (const Contribution &own : group) meeting->from.push_back(own.from);
    for (const Contribution &own : group) {
        if (own.rank->ranks != group.size()) return INVALID;
        own.stream->push([meeting, own] {
            std::unique_lock<std::mutex> lock(meeting->mutex);
            ++meeting->arrived;
            meeting->changed.notify_all();
            meeting->changed.wait(lock, [&] { return meeting->arrived == meeting->ranks; });
            lock.unlock();
            for (size_t element = 0; element < own.count; ++element) {
                float sum = 0;
                for (const float *from : meeting->from) sum += from[element];
                own.to[element] = sum;
            }
            // Nobody's memory is free before all have read it.
            lock.lock();
            ++meeting->left;
            meeting->changed.notify_all();
            meeting->changed.wait(lock, [&] { return meeting->left == meeting->ranks; });
        });
    }
    group.clear();
    return OK;
}
