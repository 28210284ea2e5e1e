#pragma once

#include "transition/internal/paths.h"

#include <stdatomic.h>
#include <stddef.h>

typedef struct column_worker column_worker;

/* A trace of LFT columns: which columns are traced, and how the dependencies of one column are found. */
typedef struct {
    const transition_tables *t;
    const void *context; /* data for `trace`, the same for all columns */
    /* Add the dependencies of the packets to one LID to worker->dep.  The entries of the LID are in worker->paths. */
    void (*trace)(column_worker *worker, int32_t column);
    size_t dep_size;  /* number of bytes of worker->dep */
    size_t flow_size; /* number of bytes of worker->flow */
    /* [K]: output, for each LFT column: whether its old and new entries can together form a forwarding loop */
    uint8_t *loops;
} column_trace;

/* State of one thread. */
struct column_worker {
    const column_trace *of;
    atomic_int *next_column;
    transition_paths paths;
    void *dep;  /* dependencies that this thread has found, as bits */
    void *flow; /* scratch of `trace` for one column */
    int code;
};

/* Trace all columns with the number of threads that given->t names.  The dependencies are added to `dep` by OR.
 * Returns 0, 1 if memory is exhausted, or 2 if a thread could not be started. */
int ibn_transition_trace_columns(const column_trace *given, void *dep);
