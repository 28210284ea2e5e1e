/* Shadow mode: let a separate worker compare the tables in force with the tables that an ibnue engine would compute.
 * After a fallback to an engine of OpenSM, this worker searches the tables of that engine for credit loops, also without
 * shadow mode.
 *
 * The subnet and the LFTs are copied into memory that is shared only with this worker.  OpenSM does not wait for the
 * result, which the host logs later.  The code of this file does not write to OpenSM's tables or to a switch. */
#include "shim.h"

#include <stdio.h>

#include "host.h"

/* Return whether the engine in force assigns SLs to paths.  An ibnue engine does so only if its tables use several VLs.
 * `ours` is the engine in force if that is an ibnue engine, otherwise NULL. */
static int has_own_sls(struct ibnue_plugin *plugin, struct ibnue_engine *ours)
{
    const struct osm_routing_engine *used = plugin->osm->routing_engine_used;
    const struct ibnue_service *service;
    int several;

    if (!ours)
        return used && used->path_sl;
    service = ibnue_service_hold(ours);
    several = service && service->vls > 1;
    ibnue_service_release(ours);
    return several;
}

/* Send the tables in force to the shadow engine's worker.  The function runs in OpenSM's sweeper, at the end of a
 * sweep. */
void ibnue_shadow_look(struct ibnue_plugin *plugin)
{
    const struct osm_routing_engine *used = plugin->osm->routing_engine_used;
    char note[IBNUE_WHY] = IBNUE_PYTHON_FAILED;
    const char *in_force = used && used->name ? used->name : "none";
    struct ibnue_engine *ours = plugin->engines;
    uint64_t generation = 0, sequence;
    int fd = -1, code, bad;

    while (ours && !(used && used->context == ours))
        ours = ours->next;
    code = ibnue_host_shadow(in_force, &fd, &generation, note, IBNUE_WHY);
    if (code == IBNUE_PENDING)
        return; /* No worker has to check the tables in force. */
    CL_PLOCK_ACQUIRE(&plugin->osm->lock);
    bad = code != IBNUE_TOKEN || ibnue_request_with_tables(plugin, &plugin->shadow, fd, generation, note);
    sequence = plugin->sequence;
    CL_PLOCK_RELEASE(&plugin->osm->lock);
    if (bad || ibnue_host_shadow_send(in_force, has_own_sls(plugin, ours), sequence, note, IBNUE_WHY) != IBNUE_TOKEN)
        SAY(plugin, OSM_LOG_ERROR, "ERR IBN30: the tables in force are not checked or compared; routing continues: %s\n", note);
}
