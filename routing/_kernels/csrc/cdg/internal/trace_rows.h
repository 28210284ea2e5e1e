#ifndef IBNUE_CDG_TRACE_ROWS_H
#define IBNUE_CDG_TRACE_ROWS_H

#include "cdg/trace.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Do what ibn_cdg_trace does, in less time, for complete tables of one connected component whose traffic uses one VL.
 * Sets *done to false and leaves dep as it was if the tables are not of this kind; hops are undefined then.
 */
int ibn_cdg_trace_rows(const cdg_tables *tables, int32_t threads, uint8_t *hops, uint32_t *dep, bool *done);

#endif
