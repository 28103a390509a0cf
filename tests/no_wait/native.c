/* A program of C that uses the header: a thread's waits are its own, and regions nest. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "syncscope_no_wait.h"

int cuStreamSynchronize(void *);
int cuCtxSynchronize(void);

static int wait_for_stream(void) { return cuStreamSynchronize((void *)7); }

static void *beside(void *nothing) {
    cuCtxSynchronize();
    return nothing;
}

int main(void) {
    const char *why = "";
    int status = syncscope_no_wait_begin(&why);
    if (status) {
        printf("%d %s\n", status, why);
        return status;
    }
    syncscope_no_wait_begin(NULL);
    for (int i = 0; i < 3; i++) wait_for_stream();
    size_t inner = syncscope_no_wait_end();
    fputs(syncscope_no_wait_text(0), stdout);
    pthread_t thread;
    pthread_create(&thread, NULL, beside, NULL);
    pthread_join(thread, NULL);
    size_t outer = syncscope_no_wait_end();
    printf("inner %zu outer %zu beyond %d\n", inner, outer, syncscope_no_wait_text(0) == NULL);
    return 0;
}
