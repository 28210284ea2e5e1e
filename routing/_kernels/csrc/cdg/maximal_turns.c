/* Select CDG edges (turns) that close no cycle together.  The edges of `sequence` are tried one after the other.  An
 * edge is selected unless it closes a cycle with the edges selected before.  So every other edge of `sequence` would
 * close a cycle with the selected edges.
 *
 * sequence: int32 [count], numbers of edges; edges that are not in `sequence` are not selected.
 * order: int32 [C], changed in place: position of each channel in an order.  The order on entry influences only the run
 * time.  On return, the array has a topological order of the selected edges.  This order makes a later call with a
 * similar sequence fast.
 * allowed: uint8 [edges], output: 1 for the selected edges. */
#include "cdg/maximal_turns.h"

#include <stdlib.h>
#include <string.h>

#include "core/internal/acyclic.h"

int ibn_cdg_maximal_turns(int32_t switches, int32_t channels, const int32_t *first, const int32_t *src,
                          const int32_t *dst, const int32_t *into, const int32_t *into_first, int32_t *order,
                          const int32_t *sequence, int32_t count, uint8_t *allowed)
{
    const acyclic_net net = {switches, channels, first, src, dst, into, into_first};
    acyclic graph;
    int32_t *channel_of = NULL;
    int failed = ibn_core_acyclic_prepare(&graph, &net, NULL, NULL)
                 || ibn_core_acyclic_open(&graph, 0, order, 1);
    if (!failed) {
        channel_of = malloc(((size_t)graph.turn_first[channels] + 1) * sizeof *channel_of);
        failed = channel_of == NULL;
    }
    if (!failed) {
        for (int32_t c = 0; c < channels; c++)
            for (int32_t t = graph.turn_first[c]; t < graph.turn_first[c + 1]; t++) {
                channel_of[t] = c;
                allowed[t] = 0;
            }
        for (int32_t i = 0; i < count; i++) {
            acyclic_step step = {.channel = channel_of[sequence[i]], .dependency = sequence[i]};
            allowed[sequence[i]] = (uint8_t)ibn_core_acyclic_fits(&graph, 0, &step, 1);
        }
        memcpy(order, graph.place[0], (size_t)channels * sizeof *order);
    }
    free(channel_of);
    ibn_core_acyclic_dispose(&graph);
    return failed;
}
