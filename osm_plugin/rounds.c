/* Write new LFTs in the rounds of an update schedule.  OpenSM itself writes the first round.  The plugin writes the
 * other rounds in the same sweep.  A round begins when all switches have acknowledged the previous round.
 *
 * By the event UCAST_ROUTING_DONE, OpenSM reports that the switches have acknowledged the LFTs.  OpenSM sends the event
 * in the sweeping thread, without a lock.  So the plugin can then call OpenSM's function that writes changed LFT
 * blocks, and needs no second sweep. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opensm/osm_ucast_mgr.h>

#include "host.h"

#define ROUND_SLICE_MS 50 /* milliseconds between two checks whether OpenSM is about to end */
#define MOST_NAME 65 /* size of the name of a device in bytes, with the 0 at its end */

/* OpenSM exports this function, but no installed header declares it. */
extern int wait_for_pending_transactions(osm_stats_t *stats) __attribute__((weak));

void ibnue_rounds_drop(struct ibnue_plugin *plugin)
{
    free(plugin->rounds.entry);
    plugin->rounds = (struct ibnue_rounds){.entry = NULL};
}

/* Prepare the rounds of tables that OpenSM has received.  Set the entries of later rounds in OpenSM's new LFTs to the
 * ports that these entries have until their round.  If `again` is set, an earlier sweep may have written some of the
 * rounds, and the plugin does not know which.  In this case, the entries of later rounds have no port until their
 * round. */
void ibnue_rounds_begin(struct ibnue_engine *engine, const struct ibnue_answer *answer, const uint8_t *bytes,
                        int again)
{
    struct ibnue_plugin *plugin = engine->plugin;
    struct ibnue_rounds *rounds = &plugin->rounds;
    size_t size = answer->deferred * sizeof(*rounds->entry);

    ibnue_rounds_drop(plugin);
    if (!answer->deferred || !wait_for_pending_transactions)
        return;
    rounds->entry = malloc(size);
    if (!rounds->entry) {
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN12: no memory for rounds: %s's tables are written at once, and mixed tables can have a credit loop\n",
            engine->name);
        return;
    }
    memcpy(rounds->entry, bytes + answer->deferred_at, size);
    rounds->count = answer->deferred;
    rounds->plan = answer->plan;
    rounds->wait_ms = answer->round_wait;
    rounds->wait_from = answer->wait_from;
    rounds->engine = engine;
    for (uint32_t i = 0; i < rounds->count; i++) {
        struct ibnue_deferred *entry = rounds->entry + i;
        uint8_t *place = plugin->rows.row[entry->row]->new_lft + entry->lid, port = entry->port;
        entry->port = *place; /* Until here, `port` was the port that the entry has until its round.  From here on,
                               * `port` is the port that the entry gets in its round. */
        /* Some entries have two writes in the list: the removal in one round, and the write of the new port in a later
         * round.  Only the write of the new port is counted. */
        rounds->left += entry->port != OSM_NO_PATH;
        *place = again ? OSM_NO_PATH : port;
        rounds->last = entry->round > rounds->last ? entry->round : rounds->last;
    }
    plugin->unsettled.rounds_open = 1;
    ibnue_spread_port0(plugin);
}

/* Return the number of switches that have not acknowledged their whole LFT.  If this number is not 0, copy the
 * name of the first of these switches, in the order of rows, to name[MOST_NAME]. */
static uint32_t not_acknowledged(struct ibnue_plugin *plugin, char *name)
{
    uint32_t count = 0;

    /* The lock is needed, because OpenSM replaces the name of a switch when the switch reports a new name. */
    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    for (uint32_t row = 0; row < plugin->rows.switches; row++) {
        const osm_switch_t *sw = plugin->rows.row[row];
        if (sw->lft && sw->new_lft && !memcmp(sw->lft, sw->new_lft, sw->max_lid_ho + 1u))
            continue;
        if (!count++)
            snprintf(name, MOST_NAME, "%s", sw->p_node->print_desc);
    }
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    return count;
}

/* Wait until all packets that were in the fabric when the switches acknowledged the previous round have left it.  The
 * configured time `wait_ms` is assumed to be long enough. */
static void let_packets_leave(const struct ibnue_rounds *rounds)
{
    struct timespec start, slice = {.tv_nsec = ROUND_SLICE_MS * 1000000L};
    double left;

    clock_gettime(CLOCK_MONOTONIC, &start);
    while ((left = rounds->wait_ms - ibnue_ms_since(&start)) > 0 && !osm_exit_flag) {
        if (left < ROUND_SLICE_MS)
            slice.tv_nsec = (long)(left * 1e6) + 1;
        nanosleep(&slice, NULL);
    }
}

/* Write the entries of a round to the switches.  Return the number of entries that were written. */
static uint32_t write_round(struct ibnue_plugin *plugin, unsigned number)
{
    const struct ibnue_rounds *rounds = &plugin->rounds;
    osm_sm_t *sm = &plugin->osm->sm;
    uint32_t written = 0;
    unsigned whole = plugin->osm->subn.need_update;

    CL_PLOCK_EXCL_ACQUIRE(sm->p_lock);
    for (uint32_t i = 0; i < rounds->count; i++)
        if (rounds->entry[i].round == number) {
            plugin->rows.row[rounds->entry[i].row]->new_lft[rounds->entry[i].lid] = rounds->entry[i].port;
            written++;
        }
    ibnue_spread_port0(plugin);
    /* If need_update is set, as in a first sweep, OpenSM writes all blocks.  Round 1 has already written all blocks, so
     * need_update is cleared for this call. */
    plugin->osm->subn.need_update = 0;
    osm_ucast_mgr_set_fwd_tables(&sm->ucast_mgr);
    plugin->osm->subn.need_update = whole;
    CL_PLOCK_RELEASE(sm->p_lock);
    return written;
}

/* Log that `missing` switches have not acknowledged round `done` + 1.  `name` is the name of the first of these
 * switches.  Request a heavy sweep, unless the previous update has stopped as well. */
static void stop(struct ibnue_plugin *plugin, unsigned done, uint32_t missing, const char *name)
{
    struct ibnue_rounds *rounds = &plugin->rounds;
    osm_subn_t *subn = &plugin->osm->subn;

    SAY(plugin, OSM_LOG_ERROR,
        "ERR IBN10: %s: round %u of %u was not acknowledged by %u %s: %s%s; later rounds are not written, and the next"
        " sweep reads the entries of the switches and continues\n",
        rounds->engine->name, done + 1, rounds->last, missing, ibnue_noun(missing, "switch", "switches"), name,
        missing > 1 ? ", ..." : "");
    /* A switch that never answers must not cause an endless sequence of sweeps.  So only one sweep is requested. */
    if (!plugin->stopped)
        subn->force_heavy_sweep = TRUE;
    plugin->stopped = 1;
}

/* Report to the worker that all switches have acknowledged the first `done` rounds.  If the report fails, log the
 * reason. */
static void log_round(struct ibnue_plugin *plugin, unsigned done)
{
    char note[IBNUE_WHY] = "";

    if (ibnue_host_written(plugin->rounds.plan, done, note, IBNUE_WHY) != IBNUE_TOKEN)
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN11: the worker got no report of the rounds that are written: %s; it comes with the next request\n",
            note);
}

/* Write all rounds after the first round, which OpenSM has just written. */
void ibnue_rounds_go_on(struct ibnue_plugin *plugin)
{
    struct ibnue_rounds *rounds = &plugin->rounds;
    uint32_t written = 0, missing = 0;
    char name[MOST_NAME] = "";
    unsigned done = 0;
    struct timespec start;

    if (!rounds->entry)
        return;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (!osm_exit_flag && !(missing = not_acknowledged(plugin, name))) {
        if (++done == 1)
            SAY(plugin, OSM_LOG_INFO, "%s: round 1 of %u: all but %u %s written and acknowledged\n",
                rounds->engine->name, rounds->last, rounds->left, ibnue_noun(rounds->left, "entry is", "entries are"));
        else
            SAY(plugin, OSM_LOG_INFO,
                "%s: round %u of %u: %u %s written and acknowledged, %.1f ms after the first\n",
                rounds->engine->name, done, rounds->last, written, ibnue_noun(written, "entry is", "entries are"),
                ibnue_ms_since(&start));
        if (done == rounds->last)
            break;
        if (rounds->wait_from && done + 1 >= rounds->wait_from)
            let_packets_leave(rounds);
        if (osm_exit_flag)
            break;
        written = write_round(plugin, done + 1);
        wait_for_pending_transactions(&plugin->osm->stats);
    }
    if (missing)
        stop(plugin, done, missing, name);
    else
        plugin->stopped = 0;
    log_round(plugin, done);
    if (done == rounds->last)
        plugin->unsettled.rounds_open = plugin->last.unfinished = 0;
    ibnue_rounds_drop(plugin);
}
