/* A clock that a test sets: loaded before all other libraries, it adds an offset to every reading of the time of day.
 *
 * The offset stands in the file that SEKISHO_CLOCK_SHIM names: two equal copies of microseconds, so that a reader never takes
 * half of a new value. Clocks that only run on, such as CLOCK_MONOTONIC, are left alone. The kernel is asked directly, as the
 * functions of the C library are the ones that are replaced here. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MICROS 1000000
#define NANOS 1000000000

/* Stays empty until the file is there: what asks for the time before that gets the machine's. */
static const volatile int64_t *offsets;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("SEKISHO_CLOCK_SHIM");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void *map = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) {
        offsets = map;
    }
}

static int64_t offset_us(void) {
    if (!offsets) {
        return 0;
    }
    for (;;) {
        int64_t first = __atomic_load_n(&offsets[0], __ATOMIC_ACQUIRE);
        if (first == __atomic_load_n(&offsets[1], __ATOMIC_ACQUIRE)) {
            return first;
        }
    }
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int result = (int)syscall(SYS_clock_gettime, clock, at);
    if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) {
        return result;
    }
    int64_t offset = offset_us();
    at->tv_sec += offset / MICROS;
    at->tv_nsec += (offset % MICROS) * 1000;
    if (at->tv_nsec < 0) {
        at->tv_nsec += NANOS;
        at->tv_sec -= 1;
    } else if (at->tv_nsec >= NANOS) {
        at->tv_nsec -= NANOS;
        at->tv_sec += 1;
    }
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    if (result == 0) {
        at->tv_sec = now.tv_sec;
        at->tv_usec = now.tv_nsec / 1000;
    }
    return result;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return (time_t)-1;
    }
    if (at) {
        *at = now.tv_sec;
    }
    return now.tv_sec;
}
