// What an audit that is armed costs a launch. Two processes share a processor and take turns every millisecond, so that both are
// slow and fast at the same times; how much longer a launch of the first takes than one of the second is told before the library
// is in the first and after.
//
//     nvcc -o armed armed.cu -ldl && report audit --armed -- ./armed           {"before": 1.002, "after": 1.003}
//     report audit --armed -- ./armed never                                    the library never comes: the scatter
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sched.h>
#include <semaphore.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

constexpr int TURNS = 300, PARTS = 3;

struct Shared {
    sem_t turn[2];
    double took[2][PARTS][TURNS];
};

__global__ void nothing() {}

/// Nanoseconds of a launch.
static double batch() {
    // Fewer than the launch queue holds, so that none waits.
    constexpr int launches = 250;
    auto begun = std::chrono::steady_clock::now();
    for (int launch = 0; launch < launches; ++launch) nothing<<<1, 1>>>();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    cudaDeviceSynchronize();
    return took.count() / launches;
}

static int measure(Shared *shared, int self, bool is_armed, const char *library) {
    batch();
    // Clocks rise in the first part. Between the last two, the library comes.
    for (int part = 0; part < PARTS; ++part) {
        for (double &took : shared->took[self][part]) {
            sem_wait(&shared->turn[self]);
            took = batch();
            if (is_armed && part == PARTS - 2 && &took == std::end(shared->took[self][part]) - 1) {
                void *loaded = dlopen(library, RTLD_NOW);
                auto begin = loaded ? reinterpret_cast<int (*)()>(dlsym(loaded, "InitializeInjection")) : nullptr;
                if (!begin || !begin()) return fprintf(stderr, "cannot load the library: %s\n", dlerror()), 1;
            }
            sem_post(&shared->turn[1 - self]);
        }
    }
    return cudaGetLastError() != cudaSuccess;
}

int main(int count, char **arguments) {
    // The driver would load the library at its first use.
    const char *named = getenv("CUDA_INJECTION64_PATH");
    std::string library = named ? named : "";
    unsetenv("CUDA_INJECTION64_PATH");
    bool never = count > 1 && !strcmp(arguments[1], "never");
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(sched_getcpu(), &processor);
    sched_setaffinity(0, sizeof processor, &processor);

    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("mmap"), 1;
    auto *shared = static_cast<Shared *>(memory);
    sem_init(&shared->turn[0], 1, 1);
    sem_init(&shared->turn[1], 1, 0);
    pid_t children[2];
    for (int self = 0; self < 2; ++self) {
        children[self] = fork();
        if (children[self] < 0) return perror("fork"), 1;
        if (children[self] == 0) return measure(shared, self, self == 0 && !never, library.c_str());
    }
    for (int ended = 0; ended < 2; ++ended) {
        int status;
        if (wait(&status) < 0 || status != 0) return kill(children[0], SIGKILL), kill(children[1], SIGKILL), 1;
    }
    double middle[PARTS];
    for (int part = 0; part < PARTS; ++part) {
        std::vector<double> ratios(TURNS);
        for (int turn = 0; turn < TURNS; ++turn) ratios[turn] = shared->took[0][part][turn] / shared->took[1][part][turn];
        std::nth_element(ratios.begin(), ratios.begin() + TURNS / 2, ratios.end());
        middle[part] = ratios[TURNS / 2];
    }
    printf("{\"before\": %.5f, \"after\": %.5f}\n", middle[PARTS - 2], middle[PARTS - 1]);
}
