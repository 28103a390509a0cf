/* A stand-in for the CUDA driver and CUPTI, for the library that `report audit` puts into a program, and for that of no-wait
 * tests: libcupti.so.13, which also exports calls of the driver. It has one clock, which runs only when a call or `fakeHost` takes
 * time: a program has the same times whenever it runs. The structures are those of cupti_callbacks.h and cupti_activity.h of
 * CUDA 13. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKED __attribute__((packed, aligned(8)))

typedef struct {
    int callbackSite;
    const char *functionName;
    const void *functionParams;
    void *functionReturnValue;
    const char *symbolName;
    void *context;
    uint32_t contextUid;
    uint64_t *correlationData;
    uint32_t correlationId;
} CallbackData;

typedef struct PACKED {
    uint32_t kind;
    uint8_t cacheConfig, sharedMemoryConfig;
    uint16_t registersPerThread;
    uint32_t partitionedRequested, partitionedExecuted;
    uint64_t start, end, completed;
    uint32_t deviceId, contextId, streamId;
    int32_t grid[3], block[3], staticShared, dynamicShared;
    uint32_t localPerThread, localTotal, correlationId;
    int64_t gridId;
    const char *name;
    void *reserved0;
} Kernel;

typedef struct PACKED {
    uint32_t kind;
    uint8_t copyKind, srcKind, dstKind, flags;
    uint64_t bytes, start, end;
    uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
} Memcpy;

typedef struct PACKED {
    uint32_t kind, flags;
    uint64_t timestamp;
    uint32_t id, objectKind, objectId[3], pad;
    const char *name, *domain;
} Marker;

typedef void (*Callback)(void *, uint32_t, uint32_t, const CallbackData *);
typedef void (*Request)(uint8_t **, size_t *, size_t *);
typedef void (*Complete)(void *, uint32_t, uint8_t *, size_t, size_t);

#define MOST 4096
#define PART 256
#define STREAMS 16

typedef struct {
    uint32_t kind;
    union { Kernel kernel; Memcpy copy; Marker marker; } as;
} Record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t now = 1000000;
static uint32_t correlation;
static uint64_t idle[STREAMS];
static Record records[MOST];
static size_t recorded, handed;
static Callback callback;
static uint8_t watched[1024], enabled[64], was_enabled[64];
static __thread int in_exit;
static int has_left;
static Request request;
static Complete complete;
static void *events[64];

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void take(uint64_t ns) {
    pthread_mutex_lock(&lock);
    now += ns;
    pthread_mutex_unlock(&lock);
}

static void until(uint64_t at) {
    pthread_mutex_lock(&lock);
    now = later(now, at);
    pthread_mutex_unlock(&lock);
}

/* A stream that is made at the place of one that has ended has another number. */
static uint32_t ended[STREAMS];
static uint32_t numbered(uint64_t stream) { return (uint32_t)stream + 100 * ended[stream]; }

/* Whether this thread has the program's table of descriptors, in which the driver's lie: CUPTI works through those. */
static int has_descriptors(void) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), high = fcntl(null, F_DUPFD_CLOEXEC, 900);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), high);
    int has = access(path, F_OK) == 0;
    close(null);
    close(high);
    return has;
}

/* CUPTI. */
int cuptiSubscribe(void **subscriber, Callback function, void *data) {
    (void)data;
    if (!has_descriptors() || has_left) return 15;
    if (getenv("FAKE_TAKEN")) return 39;
    if (getenv("FAKE_REFUSED")) return atoi(getenv("FAKE_REFUSED"));
    *subscriber = &callback;
    callback = function;
    return 0;
}
int cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t id) {
    (void)subscriber;
    if (domain == 1 && id < 1024) watched[id] = on;
    return 0;
}
int cuptiUnsubscribe(void *subscriber) {
    (void)subscriber;
    callback = 0;
    memset(watched, 0, sizeof watched);
    return 0;
}
/* Whether a tool has the callbacks. */
int fakeSubscribed(void) { return callback != 0; }
int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
    static const struct { uint32_t id; const char *name; } names[] = {
        {17, "cuCtxSynchronize"}, {119, "cuEventRecord"}, {121, "cuEventSynchronize"}, {126, "cuStreamSynchronize"},
        {243, "cuMemAlloc_v2"}, {245, "cuMemFree_v2"}, {249, "cuMemsetD8_v2"}, {271, "cuMemHostAlloc"},
        {276, "cuMemcpyHtoD_v2"}, {277, "cuMemcpyHtoDAsync_v2"}, {279, "cuMemcpyDtoHAsync_v2"}, {307, "cuLaunchKernel"},
        {326, "cuStreamDestroy_v2"}, {678, "cuLibraryLoadData"},
    };
    for (size_t i = 0; domain == 1 && i < sizeof names / sizeof *names; i++) {
        if (names[i].id == id) {
            *name = names[i].name;
            return 0;
        }
    }
    return 1;
}
int cuptiGetTimestamp(uint64_t *at) { *at = now; has_left = 0; return 0; }
int cuptiGetVersion(uint32_t *version) { *version = 130000; return 0; }
int cuptiGetStreamIdEx(void *context, void *stream, uint8_t own, uint32_t *number) {
    (void)context; (void)own;
    *number = numbered((uintptr_t)stream);
    return 0;
}
int cuptiActivityRegisterCallbacks(Request r, Complete c) { request = r; complete = c; return 0; }
/* As version 13.0, it records nothing of a kind that is enabled once more. */
int cuptiActivityEnable(uint32_t kind) {
    enabled[kind] = !was_enabled[kind];
    was_enabled[kind] = 1;
    /* Of a kernel that runs, CUPTI does not know since when. */
    if (kind == 10 && getenv("FAKE_RUNNING")) {
        records[recorded++] = (Record){10, {.kernel = {.kind = 10, .end = now, .contextId = 1, .streamId = 7, .name = "before"}}};
    }
    return 0;
}
int cuptiActivityDisable(uint32_t kind) { enabled[kind] = 0; return 0; }
/* It may be left in the exit of a call alone, with no buffer in its hands, and is back when it is asked for its time. */
static uint8_t *held;
int cuptiFinalize(void) {
    if (!in_exit || held) abort();
    has_left = 1;
    callback = 0;
    request = 0;
    complete = 0;
    memset(watched, 0, sizeof watched);
    memset(enabled, 0, sizeof enabled);
    memset(was_enabled, 0, sizeof was_enabled);
    return 0;
}
int cuptiActivityFlushPeriod(uint32_t ms) { (void)ms; return 0; }
int cuptiActivityGetNumDroppedRecords(void *c, uint32_t s, size_t *n) { (void)c; (void)s; *n = 0; return 0; }

static size_t size(uint32_t kind) {
    switch (kind) {
    case 10: return sizeof(Kernel);
    case 12: return sizeof(Marker);
    default: return sizeof(Memcpy);
    }
}
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint8_t *next = *record ? *record + size(*(uint32_t *)*record) : buffer;
    if (next >= buffer + valid) return 12;
    *record = next;
    return 0;
}
static size_t room;
static void hold(void) {
    size_t most;
    if (!held) request(&held, &room, &most);
}
static uint64_t *times(Record *record) {
    switch (record->kind) {
    case 10: return &record->as.kernel.start;
    case 12: return 0;
    default: return &record->as.copy.start;
    }
}
static int is_over(Record *record) {
    uint64_t *of = times(record);
    return !of || of[1] <= now;
}
/* A buffer is kept until all work in it is over. Where it is to be given back before, that work has no times. */
int cuptiActivityFlushAll(uint32_t forced) {
    while (handed < recorded && complete && (forced || is_over(&records[handed]))) {
        size_t used = 0;
        hold();
        if (!held) return 0;
        for (; handed < recorded && used + size(records[handed].kind) <= room; handed++) {
            Record *next = &records[handed];
            if (!is_over(next)) {
                if (!forced) break;
                memset(times(next), 0, 2 * sizeof(uint64_t));
            }
            memcpy(held + used, &next->as, size(next->kind));
            used += size(next->kind);
        }
        uint8_t *given = held;
        held = 0;
        if (handed < recorded) hold();
        complete(0, 0, given, room, used);
    }
    memmove(records, records + handed, (recorded - handed) * sizeof *records);
    recorded -= handed;
    handed = 0;
    return 0;
}

/* The driver. A call takes `own` ns of its own around what it waits for. */
typedef struct {
    uint32_t id, correlation;
    const char *name;
    uint64_t kept;
    void *params;
    int result;
} Call;

static void tell(Call *call, int site) {
    CallbackData data = {site, call->name, call->params, &call->result, 0, (void *)8, 1, &call->kept, call->correlation};
    in_exit = site == 1;
    if (callback && watched[call->id]) callback(0, 1, call->id, &data);
    in_exit = 0;
}
static Call enter(uint32_t id, const char *name, void *params) {
    Call call = {id, __sync_add_and_fetch(&correlation, 1), name, 0, params, 0};
    tell(&call, 0);
    return call;
}
static void leave(Call *call) { tell(call, 1); }

int cuInit(unsigned flags) {
    (void)flags;
    if (getenv("FAKE_NO_DEVICE")) return 100;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : 0;
    int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : 0;
    if (begin) begin();
    return 0;
}
int cuDriverGetVersion(int *version) {
    Call call = enter(2, "cuDriverGetVersion", &version);
    *version = 13000;
    leave(&call);
    return 0;
}
void fakeHost(uint64_t ns) { take(ns); }
uint64_t fakeNow(void) { return now; }

/* CUPTI hands over in between what is full. */
static Record *record(uint32_t kind) {
    static Record none;
    if (recorded == PART) cuptiActivityFlushAll(0);
    if (!enabled[kind] || recorded == MOST) return &none;
    if (request) hold();
    records[recorded].kind = kind;
    return &records[recorded++];
}
static uint64_t enqueue(uint64_t stream, uint64_t ns, uint64_t *end) {
    uint64_t start = later(now, idle[stream]);
    *end = idle[stream] = start + ns;
    return start;
}

/* Watched in windows only, as launches are. */
int fakeLaunch(const char *name, uint64_t stream, uint64_t ns) {
    Call call = enter(307, "cuLaunchKernel", 0);
    uint32_t own = call.correlation;
    take(4000);
    Kernel kernel = {.kind = 10, .contextId = 1, .streamId = numbered(stream), .correlationId = own, .name = strdup(name)};
    uint64_t end;
    kernel.start = enqueue(stream, ns, &end);
    kernel.end = end;
    record(10)->as.kernel = kernel;
    leave(&call);
    return 0;
}
static void mark(uint32_t id, uint32_t flags, const char *name) {
    Marker marker = {.kind = 12, .flags = flags, .timestamp = now, .id = id, .name = name};
    record(12)->as.marker = marker;
}
void fakeRange(uint32_t id, const char *name) { mark(id, name ? 2 : 4, name ? strdup(name) : 0); }

int cuStreamSynchronize(void *stream) {
    struct { void *stream; } params = {stream};
    Call call = enter(126, "cuStreamSynchronize", &params);
    if ((uintptr_t)stream >= STREAMS) {
        call.result = 400;
        leave(&call);
        return 400;
    }
    until(idle[(uintptr_t)stream]);
    take(2000);
    leave(&call);
    return 0;
}
int cuStreamDestroy_v2(void *stream) {
    struct { void *stream; } params = {stream};
    Call call = enter(326, "cuStreamDestroy_v2", &params);
    take(2000);
    ended[(uintptr_t)stream]++;
    leave(&call);
    return 0;
}
int cuCtxSynchronize(void) {
    Call call = enter(17, "cuCtxSynchronize", 0);
    for (int i = 0; i < STREAMS; i++) until(idle[i]);
    take(1000);
    leave(&call);
    return 0;
}
static uint64_t at_event[64];
int cuEventRecord(void *event, void *stream) {
    struct { void *event, *stream; } params = {event, stream};
    Call call = enter(119, "cuEventRecord", &params);
    at_event[(uintptr_t)event] = idle[(uintptr_t)stream];
    events[(uintptr_t)event] = stream;
    take(500);
    leave(&call);
    return 0;
}
int cuEventSynchronize(void *event) {
    struct { void *event; } params = {event};
    Call call = enter(121, "cuEventSynchronize", &params);
    until(at_event[(uintptr_t)event]);
    take(1500);
    leave(&call);
    return 0;
}
/* Host memory below 4096 is page-locked. From 1 << 40 on it is the device's, and managed from 1 << 39 on. */
int cuPointerGetAttribute(uint32_t *answer, int attribute, uint64_t pointer) {
    int known = pointer < 4096 || pointer >= 1ull << 39, host = pointer < 4096;
    if (known && attribute == 2) *answer = host ? 1 : 2;
    if (known && attribute == 8) *(uint8_t *)answer = !host && pointer < 1ull << 40;
    return !known;
}
/* 10 bytes a nanosecond. */
static int copy(uint32_t id, const char *name, uint64_t host, int to_host, size_t bytes, uint64_t stream, int blocks,
                void *params) {
    Call call = enter(id, name, params);
    int pinned = host < 4096;
    Memcpy copy = {.kind = 1, .copyKind = to_host ? 2 : 1, .bytes = bytes, .contextId = 1, .streamId = numbered(stream)};
    copy.srcKind = to_host ? 3 : pinned ? 2 : 1;
    copy.dstKind = to_host ? (pinned ? 2 : 1) : 3;
    copy.correlationId = call.correlation;
    uint64_t end;
    take(2000);
    copy.start = enqueue(stream, 1000 + bytes / 10, &end);
    copy.end = end;
    record(1)->as.copy = copy;
    if (blocks || (!pinned && (to_host || bytes > 65536))) until(end);
    take(3000);
    leave(&call);
    return 0;
}
int cuMemcpyDtoHAsync_v2(uint64_t host, uint64_t device, size_t bytes, uint64_t stream) {
    uint64_t params[4] = {host, device, bytes, stream};
    return copy(279, "cuMemcpyDtoHAsync_v2", host, 1, bytes, stream, 0, params);
}
int cuMemcpyHtoDAsync_v2(uint64_t device, uint64_t host, size_t bytes, uint64_t stream) {
    uint64_t params[4] = {device, host, bytes, stream};
    return copy(277, "cuMemcpyHtoDAsync_v2", host, 0, bytes, stream, 0, params);
}
int cuMemcpyHtoD_v2(uint64_t device, uint64_t host, size_t bytes) {
    uint64_t params[3] = {device, host, bytes};
    return copy(276, "cuMemcpyHtoD_v2", host, 0, bytes, 0, 1, params);
}
static int plain(uint32_t id, const char *name, uint64_t first, uint64_t ns, int waits) {
    uint64_t params[4] = {first, 4096, 0, 0};
    Call call = enter(id, name, params);
    for (int i = 0; waits && i < STREAMS; i++) until(idle[i]);
    take(ns);
    leave(&call);
    return 0;
}
int cuMemAlloc_v2(void) { return plain(243, "cuMemAlloc_v2", 0, 100000, 0); }
int cuMemFree_v2(uint64_t pointer) { return plain(245, "cuMemFree_v2", pointer, 60000, 1); }
int cuMemHostAlloc(void) { return plain(271, "cuMemHostAlloc", 0, 500000, 0); }
int cuLibraryLoadData(void) { return plain(678, "cuLibraryLoadData", 0, 6000000, 0); }
int cuMemsetD8_v2(uint64_t pointer) { return plain(249, "cuMemsetD8_v2", pointer, 1000, 0); }
