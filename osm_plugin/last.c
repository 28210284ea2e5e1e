/* Keep the last tables that are proven free of credit loops, together with the subnet for which they were computed.
 * Use these tables again when an engine fails.
 *
 * If all engines failed, OpenSM would leave the LFTs in the switches as they are, and answer no path query.  While the
 * subnet is unchanged, byte for byte, the proof of the last tables is valid.  If the subnet has changed, only the valid
 * entries are used.  The proof still covers them: without the other entries the CDG has fewer edges, and stays
 * acyclic. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keep the worker's last answer as the tables to fall back on, if it is proven.  Otherwise drop the tables that were
 * kept before. */
void ibnue_last_keep(struct ibnue_plugin *plugin)
{
    struct ibnue_tables older = plugin->last;

    if (!plugin->taken.answer.certified) {
        ibnue_tables_drop(&plugin->last);
        return;
    }
    plugin->last = plugin->taken;
    plugin->taken = older; /* The buffer of the earlier tables is reused for the worker's next answer. */
}

/* Return whether two requests describe the same subnet.  Sequence numbers, options, and padding between the arrays
 * are ignored. */
int ibnue_same_subnet(const uint8_t *one, const uint8_t *other)
{
    const struct ibnue_request *a = (const struct ibnue_request *)one, *b = (const struct ibnue_request *)other;
    size_t devices = a->devices * sizeof(struct ibnue_device), ends = a->endports * sizeof(struct ibnue_endport);

    return a->switches == b->switches && a->devices == b->devices && a->endports == b->endports &&
           a->cables == b->cables && a->data_vls == b->data_vls && a->qos == b->qos &&
           !memcmp(one + a->device_at, other + b->device_at, devices) &&
           !memcmp(one + a->endport_at, other + b->endport_at, ends) &&
           !memcmp(one + a->cable_at, other + b->cable_at, a->cables * sizeof(struct ibnue_cable));
}

/* Return the current subnet as a request.  Return NULL if memory allocation fails or OpenSM's tables contradict each
 * other.  The caller frees the request. */
uint8_t *ibnue_subnet_now(struct ibnue_plugin *plugin)
{
    struct ibnue_walk walk;
    char why[IBNUE_WHY];
    uint8_t *now;

    if (ibnue_walk_open(plugin, &walk, why))
        return NULL;
    now = malloc(walk.room);
    if (now)
        ibnue_request_write(plugin, &walk, now);
    ibnue_walk_close(&walk);
    return now;
}

/* Return whether OpenSM has another engine to try after this engine: the next engine of its list, or its fallback
 * engine. */
int ibnue_another_follows(const struct ibnue_engine *engine)
{
    const osm_opensm_t *osm = engine->plugin->osm;
    const struct osm_routing_engine *next = osm->routing_engine_list;

    while (next && next->context != engine)
        next = next->next;
    return (next && next->next) || !osm->no_fallback_routing_engine;
}

/* Return whether the engine `other` comes after `engine` in OpenSM's list, or is `engine` itself. */
int ibnue_comes_later(const struct ibnue_engine *engine, const struct ibnue_engine *other)
{
    const struct osm_routing_engine *next = engine->plugin->osm->routing_engine_list;

    while (next && next->context != engine)
        next = next->next;
    while (next && next->context != other)
        next = next->next;
    return next != NULL;
}

/* Return whether all engines that OpenSM can try after this engine belong to this plugin.  Engines of this plugin need
 * the worker. */
static int only_own_follow(const struct ibnue_engine *engine)
{
    const osm_opensm_t *osm = engine->plugin->osm;
    const struct osm_routing_engine *next = osm->routing_engine_list;
    const struct ibnue_engine *own;

    while (next && next->context != engine)
        next = next->next;
    for (next = next ? next->next : NULL; next; next = next->next) {
        for (own = engine->plugin->engines; own && own != next->context; own = own->next)
            ;
        if (!own)
            return 0;
    }
    return osm->no_fallback_routing_engine;
}

/* Return whether this engine will probably have tables in the next sweep.  This is assumed if the worker was replaced
 * or is late, and if the engine has failed for such a reason only once.  A new worker is ready about a second later.
 * A late worker still computes, and its tables are used in the next sweep. */
static int recovers_soon(const struct ibnue_engine *engine)
{
    const struct ibnue_asked *asked = &engine->plugin->asked;

    return (asked->replaced || asked->late) && engine->lost == 1;
}

/* Return after how many milliseconds the next sweep must begin even if a late worker still computes.  OpenSM can then
 * try an engine that needs no worker.  Return 0 (no limit) if the worker is not late, or if no such engine comes after
 * this engine. */
static int longest_pause(const struct ibnue_engine *engine)
{
    const struct ibnue_asked *asked = &engine->plugin->asked;

    return asked->late && !only_own_follow(engine) ? asked->waited : 0;
}

/* Give the tables of an answer to OpenSM.  `bytes` is the buffer with the tables, and `source` states which buffer of
 * the plugin this is.  Return 0, or -1 with the reason in `why`. */
static int publish_last(struct ibnue_engine *engine, const struct ibnue_answer *answer, const uint8_t *bytes,
                   enum ibnue_source source, char *why)
{
    if (ibnue_tables_fit(engine->plugin, answer, bytes, why) || ibnue_publish(engine, answer, bytes, why))
        return -1;
    ibnue_settle_later(engine, answer, source);
    if (engine->plugin->last.unfinished)
        ibnue_rounds_begin(engine, answer, bytes, 1);
    return 0;
}

/* Give OpenSM the entries of the last proven tables that are still valid.  Return 0 with a description in `what`, or -1
 * with the reason in `what`. */
static int serve_remains(struct ibnue_engine *engine, const uint8_t *now, char *what)
{
    struct ibnue_plugin *plugin = engine->plugin;
    const struct ibnue_remains *remains = &plugin->remains;
    int length, spare, pause;

    /* If another engine computed the last proven tables, that engine may come next in OpenSM's list, and may be able to
     * route the changed subnet.  So this engine fails, and OpenSM tries the next engine.  Without a next engine, this
     * engine gives OpenSM the entries that are still valid. */
    if (plugin->last.engine != engine && ibnue_another_follows(engine)) {
        snprintf(what, IBNUE_WHY, "the last proven tables are those of %s, so the next engine is tried",
                 plugin->last.engine->name);
        return -1;
    }
    if (ibnue_remains_make(plugin, now, what))
        return -1;
    /* If another engine routed now, it would replace nearly all entries, and this engine would replace them again in
     * the next sweep.  Each of these changes can be unsafe.  If this engine will probably route in the next sweep, no
     * other engine is tried.  Some pairs of end ports then have no path until that sweep. */
    spare = remains->served < remains->pairs && ibnue_another_follows(engine);
    if (spare && !recovers_soon(engine)) {
        snprintf(what, IBNUE_WHY, "%" PRIu64 " of %" PRIu64 " pairs of end ports have a path in its last tables, so the "
                 "next engine is tried", remains->served, remains->pairs);
        return -1;
    }
    if (publish_last(engine, &remains->answer, remains->bytes, IBNUE_FROM_REMAINS, what))
        return -1;
    pause = longest_pause(engine);
    if (spare)
        ibnue_watch_spare(plugin, pause);
    length = snprintf(what, IBNUE_WHY, "keeps what is left of the last proven tables (%s): %" PRIu64 " of %" PRIu64
                      " pairs of end ports have a path, %u broken %s dropped",
                      plugin->last.engine->name, remains->served, remains->pairs, remains->dropped,
                      ibnue_noun(remains->dropped, "entry is", "entries are"));
    if (remains->moved && length < IBNUE_WHY)
        length += snprintf(what + length, (size_t)(IBNUE_WHY - length),
                           "; not proven: traffic from %u %s new or %s moved", remains->moved,
                           ibnue_noun(remains->moved, "end port that is", "end ports that are"),
                           ibnue_noun(remains->moved, "has", "have"));
    if (remains->cut_off && length < IBNUE_WHY)
        length += snprintf(what + length, (size_t)(IBNUE_WHY - length), "; multicast is cut off at %u %s",
                           remains->cut_off, ibnue_noun(remains->cut_off, "switch", "switches"));
    if (spare && length < IBNUE_WHY)
        length += snprintf(what + length, (size_t)(IBNUE_WHY - length),
                           "; another sweep follows as soon as a worker can route");
    if (spare && pause && length < IBNUE_WHY)
        snprintf(what + length, (size_t)(IBNUE_WHY - length), ", at the latest after %.1f s", pause / 1000.0);
    return 0;
}

/* Give OpenSM the last proven tables.  If the subnet has changed, give OpenSM only the entries that are still valid.
 * Return 0 with a description in `what`, or -1 with the reason in `what`. */
int ibnue_last_serve(struct ibnue_engine *engine, char *what)
{
    struct ibnue_plugin *plugin = engine->plugin;
    uint8_t *now;
    int failed;

    snprintf(what, IBNUE_WHY, "there are no proven tables yet");
    if (!plugin->last.bytes)
        return -1;
    snprintf(what, IBNUE_WHY, "out of memory");
    if (!(now = ibnue_subnet_now(plugin)))
        return -1;
    if (plugin->last.engine == engine && ibnue_same_subnet(now, plugin->last.bytes)) {
        failed = publish_last(engine, &plugin->last.answer, plugin->last.bytes, IBNUE_FROM_LAST, what);
        if (!failed)
            snprintf(what, IBNUE_WHY, "keeps its last tables, which are proven for exactly this subnet");
    } else {
        failed = serve_remains(engine, now, what);
    }
    free(now);
    return failed;
}
