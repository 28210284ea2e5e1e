/* Run the plugin's handler of events in sweeps.  Each argument is the number of SL-to-VL tables that OpenSM cuts in one
 * sweep; with a leading "x", the sweep fails before SUBNET UP.  Print the log lines and the requested sweeps. */
#include "plugin.c"

#include <opensm/osm_sm.h>
#include <stdarg.h>

void ibnue_say(struct ibnue_plugin *plugin, osm_log_level_t level, const char *format, ...)
{
    va_list values;

    (void)plugin;
    printf("%s", level == OSM_LOG_ERROR ? "" : "info ");
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
}

void osm_sm_signal(osm_sm_t *sm, osm_signal_t signal)
{
    (void)sm;
    printf("signal %s\n", signal == OSM_SIGNAL_SWEEP ? "sweep" : "other");
}

int ibnue_abi_fits(struct ibnue_plugin *plugin, char *why)
{
    (void)plugin, (void)why;
    return 0;
}

int ibnue_host_check_worker(char *note, size_t room)
{
    (void)note, (void)room;
    return 0;
}

void ibnue_status_event(struct ibnue_plugin *plugin, osm_epi_event_id_t event) { (void)plugin, (void)event; }
void ibnue_policies_apply(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_watch_start(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_shadow_look(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_rounds_go_on(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_copies_written(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_copies_discovered(struct ibnue_plugin *plugin) { (void)plugin; }
void ibnue_settle(struct ibnue_plugin *plugin) { (void)plugin; }

int main(int count, char **sweeps)
{
    struct ibnue_plugin plugin = {.osm = calloc(1, sizeof(osm_opensm_t))};

    if (!plugin.osm || cl_plock_init(&plugin.osm->lock) != CL_SUCCESS)
        return 1;
    for (int i = 1; i < count; i++) {
        int fails = sweeps[i][0] == 'x';
        report(&plugin, OSM_EVENT_ID_HEAVY_SWEEP_START, NULL);
        plugin.narrow += (uint32_t)atoi(sweeps[i] + fails);
        if (!fails)
            report(&plugin, OSM_EVENT_ID_SUBNET_UP, NULL);
    }
    return 0;
}
