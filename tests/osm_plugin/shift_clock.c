/* A library for LD_PRELOAD: in calls from the plugin, the system's clock is an hour ahead of the kernel's clock.  The
 * plugin then sees what it sees if the clock is set back by an hour right after each call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    Dl_info caller;

    if (!failed && clock == CLOCK_REALTIME && dladdr(__builtin_return_address(0), &caller) && caller.dli_fname
        && strstr(caller.dli_fname, "libibnue.so"))
        now->tv_sec += 3600;
    return failed;
}
