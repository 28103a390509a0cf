/* Stands between a program and the system's library, counts the program's own calls that change files, and has one of
 * them fail or the process die at it. Calls of the libraries that it loads pass: NVIDIA's driver, where it cannot delete a
 * file, frees what it never allocated. FAULT_AT: which call, from 1. FAULT_MODE: kill (before it), killed (after it), fail
 * (this one), full (this one and all after it), deny (this one, which is not allowed), stay (a process that measures does not
 * end while a thread of it works, as one whose driver waits for its device). FAULT_COUNT: a file for the number of calls at
 * the end. FAULT_CLOCK: what the system's clock says, in seconds since 1970. FAULT_THREADS, FAULT_PROCESSES: from which on,
 * from 1, a process of the program gets no more of them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static int is(const char *mode) {
    const char *stated = getenv("FAULT_MODE");
    return stated && strcmp(stated, mode) == 0;
}

/* Whether the call that returns to this address is the program's. */
static int own(void *caller) {
    Dl_info from, program;
    return dladdr(caller, &from) && dladdr((void *)getauxval(AT_PHDR), &program) && from.dli_fbase == program.dli_fbase;
}

/* Whether this call fails; dies where it is to die before it. Its number is 0 where it is not counted. */
static int begins(long *number, void *caller) {
    *number = 0;
    if (!own(caller)) return 0;
    const char *at = getenv("FAULT_AT");
    long stated = at ? atol(at) : 0;
    *number = atomic_fetch_add(&calls, 1) + 1;
    if (stated && *number == stated && is("kill")) raise(SIGKILL);
    if (stated && ((*number == stated && is("fail")) || (*number >= stated && is("full")))) {
        errno = ENOSPC;
        return 1;
    }
    if (stated && *number == stated && is("deny")) {
        errno = EACCES;
        return 1;
    }
    return 0;
}

static void ends(long number) {
    const char *at = getenv("FAULT_AT");
    if (at && number && number == atol(at) && is("killed")) raise(SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CHANGES(type, name, parameters, ...)                                                                           \
    type name parameters {                                                                                             \
        long number;                                                                                                   \
        if (begins(&number, __builtin_return_address(0))) return -1;                                                   \
        type result = REAL(name)(__VA_ARGS__);                                                                         \
        ends(number);                                                                                                  \
        return result;                                                                                                 \
    }

CHANGES(int, rename, (const char *a, const char *b), a, b)
CHANGES(int, renameat, (int c, const char *a, int d, const char *b), c, a, d, b)
CHANGES(int, renameat2, (int c, const char *a, int d, const char *b, unsigned flags), c, a, d, b, flags)
CHANGES(int, link, (const char *a, const char *b), a, b)
CHANGES(int, unlink, (const char *path), path)
CHANGES(int, unlinkat, (int folder, const char *path, int flags), folder, path, flags)
CHANGES(int, rmdir, (const char *path), path)
CHANGES(int, mkdir, (const char *path, mode_t mode), path, mode)
CHANGES(int, fsync, (int file), file)
CHANGES(int, fdatasync, (int file), file)
CHANGES(int, ftruncate64, (int file, off64_t length), file, length)

ssize_t write(int file, const void *bytes, size_t length) {
    long number;
    struct stat about;
    /* What is said to the user is no file, nor is a pipe. */
    if (file <= 2 || fstat(file, &about) || !S_ISREG(about.st_mode)) return REAL(write)(file, bytes, length);
    if (begins(&number, __builtin_return_address(0))) return -1;
    ssize_t result = REAL(write)(file, bytes, length);
    ends(number);
    return result;
}

static int opened(void *caller, int folder, const char *path, int flags, mode_t mode, int at, const char *name) {
    long number = 0;
    int changes = (flags & (O_CREAT | O_WRONLY | O_RDWR)) && strncmp(path, "/dev/", 5) && strncmp(path, "/proc/", 6);
    if (changes && begins(&number, caller)) return -1;
    int result = at ? ((int (*)(int, const char *, int, mode_t))dlsym(RTLD_NEXT, name))(folder, path, flags, mode)
                    : ((int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, name))(path, flags, mode);
    if (changes) ends(number);
    return result;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = va_arg(rest, int);                                                                               \
        va_end(rest);                                                                                                  \
        return opened(__builtin_return_address(0), 0, path, flags, mode, 0, #name);                                    \
    }
#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *path, int flags, ...) {                                                           \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = va_arg(rest, int);                                                                               \
        va_end(rest);                                                                                                  \
        return opened(__builtin_return_address(0), folder, path, flags, mode, 1, #name);                               \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int clock_gettime(clockid_t clock, struct timespec *time) {
    const char *stated = getenv("FAULT_CLOCK");
    int result = REAL(clock_gettime)(clock, time);
    if (stated && clock == CLOCK_REALTIME) time->tv_sec = atol(stated);
    return result;
}

/* Whether there are as many already as FAULT_THREADS or FAULT_PROCESSES leaves. */
static int none_left(const char *which, atomic_long *made, void *caller) {
    const char *from = getenv(which);
    return from && own(caller) && atomic_fetch_add(made, 1) + 1 >= atol(from);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*begin)(void *), void *argument) {
    static atomic_long made;
    if (none_left("FAULT_THREADS", &made, __builtin_return_address(0))) return EAGAIN;
    return REAL(pthread_create)(thread, how, begin, argument);
}

int posix_spawnp(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *how, char *const arguments[], char *const environment[]) {
    static atomic_long made;
    if (none_left("FAULT_PROCESSES", &made, __builtin_return_address(0))) return EAGAIN;
    return REAL(posix_spawnp)(child, path, actions, how, arguments, environment);
}

/* Whether another thread of a process that measures is running. */
static int works(void) {
    char text[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    DIR *threads = memmem(text, bytes, "next-run", 8) ? opendir("/proc/self/task") : NULL;
    int running = 0;
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        if (atoi(thread->d_name) == 0 || atoi(thread->d_name) == gettid()) continue;
        snprintf(text, sizeof text, "/proc/self/task/%s/stat", thread->d_name);
        file = fopen(text, "r");
        bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) fclose(file);
        text[bytes] = 0;
        const char *state = strrchr(text, ')');
        running |= state && state[1] == ' ' && state[2] == 'R';
    }
    if (threads) closedir(threads);
    return running;
}

__attribute__((destructor)) static void report(void) {
    while (is("stay") && works()) pause();
    const char *path = getenv("FAULT_COUNT");
    long all = atomic_load(&calls);
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld", all);
    fclose(file);
}
