/* One thread calls the driver with a lock held; another, with the interpreter's lock held, waits for that lock. */
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
