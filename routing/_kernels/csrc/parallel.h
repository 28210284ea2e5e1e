#ifndef IBNUE_PARALLEL_H
#define IBNUE_PARALLEL_H
#include <stdint.h>
typedef void (*ibn_job)(void *context, int32_t item);
int ibn_parallel(int32_t threads, int32_t items, ibn_job job, void *context);
#endif
