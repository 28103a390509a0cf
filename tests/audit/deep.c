/* A library whose call of the driver lies as deep as asked. */
int cuStreamSynchronize(void *);

int deep(int frames) {
    int result = frames ? deep(frames - 1) : cuStreamSynchronize((void *)3);
    __asm__ volatile("" : "+r"(result));
    return result;
}
