#pragma once

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Do the work of ibn_cdg_trace faster in a common case: the fabric is connected, the tables are complete, and all
 * traffic uses one VL.  In all other cases, *done receives false and `dep` stays unchanged, and the values in `hops`
 * are undefined.  Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_trace_rows(const cdg_tables *tables, int32_t threads, uint8_t *hops, uint32_t *dep, bool *done);
