/* The last tables of an engine that were proven free of credit loops, with the subnet that they are for.
 *
 * When an engine fails, OpenSM leaves the tables in the switches but answers path queries as without an engine.  As long
 * as the subnet is what it was, byte for byte, the tables that were proven for it are as good as they were. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ibnue_last_drop(struct ibnue_engine *engine)
{
    free(engine->last.bytes);
    engine->last = (struct ibnue_last){.bytes = NULL};
}

/* Copy request and answer; without memory for it there is nothing to fall back on, which is no failure. */
void ibnue_last_keep(struct ibnue_engine *engine, const struct ibnue_answer *answer)
{
    struct ibnue_last *last = &engine->last;
    size_t size = ibnue_answer_extent(answer);

    if (!answer->certified) {
        ibnue_last_drop(engine);
        return;
    }
    if (size > last->room || size < last->room / 2) {
        ibnue_last_drop(engine);
        last->bytes = malloc(size);
        if (!last->bytes)
            return;
        last->room = size;
    }
    memcpy(last->bytes, engine->plugin->memory.bytes, size);
    last->answer = *answer;
    last->unfinished = engine->plugin->unsettled.rounds_open;
}

/* Not over the number of the request, nor over what happens to lie between the arrays. */
static int same_subnet(const uint8_t *one, const uint8_t *other)
{
    const struct ibnue_request *a = (const struct ibnue_request *)one, *b = (const struct ibnue_request *)other;
    size_t devices = a->devices * sizeof(struct ibnue_device), ends = a->endports * sizeof(struct ibnue_endport);

    return a->switches == b->switches && a->devices == b->devices && a->endports == b->endports &&
           a->cables == b->cables && a->data_vls == b->data_vls && a->qos == b->qos &&
           !memcmp(one + a->device_at, other + b->device_at, devices) &&
           !memcmp(one + a->endport_at, other + b->endport_at, ends) &&
           !memcmp(one + a->cable_at, other + b->cable_at, a->cables * sizeof(struct ibnue_cable));
}

/* Whether there are tables for the subnet as it is. */
int ibnue_last_holds(const struct ibnue_engine *engine)
{
    struct ibnue_walk walk;
    char why[IBNUE_WHY];
    uint8_t *now;
    int same = 0;

    if (!engine->last.bytes || ibnue_walk_open(engine->plugin, &walk, why))
        return 0;
    now = malloc(walk.room);
    if (now) {
        ibnue_request_write(engine->plugin, &walk, now);
        same = same_subnet(now, engine->last.bytes);
    }
    free(now);
    ibnue_walk_close(&walk);
    return same;
}
