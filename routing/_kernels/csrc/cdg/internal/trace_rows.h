#ifndef IBNUE_CDG_TRACE_ROWS_H
#define IBNUE_CDG_TRACE_ROWS_H

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Do the work of ibn_cdg_trace faster for a common kind of tables: complete tables of one connected part whose traffic
 * uses one VL.  For all other tables, *done receives false and `dep` stays unchanged.  In that case the values in
 * `hops` are undefined.  Returns 0, or 1 if memory is exhausted. */
int ibn_cdg_trace_rows(const cdg_tables *tables, int32_t threads, uint8_t *hops, uint32_t *dep, bool *done);

#endif
