#ifndef IBNUE_CDG_TRACE_ROWS_H
#define IBNUE_CDG_TRACE_ROWS_H

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/* Do the work of ibn_cdg_trace in less time for a common kind of tables: complete tables of one connected component
 * whose traffic uses one VL.  For other tables, the function sets *done to false and does not change `dep`.  The values
 * in `hops` are undefined then. */
int ibn_cdg_trace_rows(const cdg_tables *tables, int32_t threads, uint8_t *hops, uint32_t *dep, bool *done);

#endif
