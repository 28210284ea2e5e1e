/* Write as text those options of opensm.conf that OpenSM itself does not apply to tables of a plugin.  The worker
 * applies them.
 *
 * Each option that differs from OpenSM's default is one line "key value".  osm_plugin/opensm_conf.py defines how the
 * worker handles each option. */
#include "shim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_VALUE 1024 /* maximum length of a value in bytes */

/* A text buffer that is being filled. */
struct text {
    char *at;    /* [room], the buffer; the text in the buffer ends with a byte 0 */
    size_t room; /* size of the buffer in bytes */
    size_t used; /* length of the text in bytes, without the final 0 */
};

/* Append formatted text, or nothing if it does not fit. */
static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list values;
    int length;

    va_start(values, format);
    length = vsnprintf(text->at + text->used, text->room - text->used, format, values);
    va_end(values);
    if (length > 0 && (size_t)length < text->room - text->used)
        text->used += (size_t)length;
}

static void add_string(struct text *text, const char *key, const char *value)
{
    if (value && *value && !strchr(value, '\n') && strlen(value) <= LONGEST_VALUE)
        add(text, "%s %s\n", key, value);
}

static void add_flag(struct text *text, const char *key, boolean_t value)
{
    if (value)
        add(text, "%s TRUE\n", key);
}

/* Append a line with the key of an option and its value, unless the value is OpenSM's default (`usual`). */
static void add_number(struct text *text, const char *key, unsigned long value, unsigned long usual)
{
    if (value != usual)
        add(text, "%s %lu\n", key, value);
}

static void add_files(struct text *text, const osm_subn_opt_t *opt)
{
    add_string(text, "config_file", opt->config_file);
    add_string(text, "root_guid_file", opt->root_guid_file);
    add_string(text, "hop_weights_file", opt->hop_weights_file);
    add_string(text, "port_prof_ignore_file", opt->port_prof_ignore_file);
    add_string(text, "guid_routing_order_file", opt->guid_routing_order_file);
    add_string(text, "port_search_ordering_file", opt->port_search_ordering_file);
    add_string(text, "cn_guid_file", opt->cn_guid_file);
    add_string(text, "io_guid_file", opt->io_guid_file);
    add_string(text, "ids_guid_file", opt->ids_guid_file);
    add_string(text, "lid_matrix_dump_file", opt->lid_matrix_dump_file);
    add_string(text, "lfts_file", opt->lfts_file);
}

/* Append a line with the SLs whose bits are set in a mask, unless the mask is 0. */
static void add_sls(struct text *text, const char *key, uint32_t mask)
{
    char list[3 * 16];
    size_t used = 0;

    for (unsigned sl = 0; sl < 16; sl++)
        if (mask >> sl & 1)
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", used ? "," : "", sl);
    if (used)
        /* One call of add() writes the whole line, so that a line that does not fit is left out completely. */
        add(text, "%s %s\n", key, list);
}

/* Write the text of the options into a buffer of `room` bytes.  Return the length of the text, without the final 0. */
size_t ibnue_options_write(const struct ibnue_plugin *plugin, char *bytes, size_t room)
{
    const osm_subn_opt_t *opt = &plugin->osm->subn.opt;
    struct text text = {.at = bytes, .room = room};
    uint32_t policy, partitions;

    add_files(&text, opt);
    add_flag(&text, "connect_roots", opt->connect_roots);
    add_flag(&text, "port_shifting", opt->port_shifting);
    add_number(&text, "scatter_ports", opt->scatter_ports, 0);
    add_flag(&text, "guid_routing_order_no_scatter", opt->guid_routing_order_no_scatter);
    add_flag(&text, "port_profile_switch_nodes", opt->port_profile_switch_nodes);
    add_flag(&text, "avoid_throttled_links", opt->avoid_throttled_links);
    add_number(&text, "max_reverse_hops", opt->max_reverse_hops, 0);
    add_flag(&text, "quasi_ftree_indexing", opt->quasi_ftree_indexing);
    add_flag(&text, "do_mesh_analysis", opt->do_mesh_analysis);
    add_number(&text, "lash_start_vl", opt->lash_start_vl, 0);
    add_number(&text, "nue_max_num_vls", opt->nue_max_num_vls, 1);
    add_flag(&text, "nue_include_switches", opt->nue_include_switches);
    add_flag(&text, "use_optimized_slvl", opt->use_optimized_slvl);
    add_number(&text, "sm_assigned_guid", opt->sm_assigned_guid, 0);
    add_number(&text, "sm_sl", opt->sm_sl, 0);
    ibnue_qos_sls(plugin, &policy, &partitions);
    add_sls(&text, "qos_policy_sls", policy);
    add_sls(&text, "partition_sls", partitions);
    if (opt->qos)
        add_string(&text, "qos_swe_sl2vl", opt->qos_swe_options.sl2vl ? opt->qos_swe_options.sl2vl : opt->qos_options.sl2vl);
    return text.used;
}
