/* One thread calls the driver with a lock held; another, with the interpreter's lock held, waits for that lock. And a thread of
 * the interpreter that runs no Python, as those of PyTorch's backward pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int locked, wanted;

void call_with_the_lock(int (*call)(void)) {
    pthread_mutex_lock(&lock);
    locked = 1;
    while (!wanted) sched_yield();
    call();
    pthread_mutex_unlock(&lock);
}

void wait_until_locked(void) {
    while (!locked) sched_yield();
}

void take_the_lock(void) {
    wanted = 1;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *without_python(void *call) {
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void *(*save)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    int known = ensure();
    void *state = save();
    ((int (*)(void))call)();
    restore(state);
    release(known);
    return 0;
}

void call_in_a_thread(void *call) {
    pthread_t thread;
    pthread_create(&thread, 0, without_python, call);
    pthread_join(thread, 0);
}
