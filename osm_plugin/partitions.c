/* Keep the SLs of the administrator's partitions while partition_config_file has an error.
 *
 * If the file has an error, OpenSM drops all its partitions and puts all ports into the default partition.  Without
 * these functions, the engine would replace the tables twice.  First, it would compute tables without the QoS classes
 * of the dropped partitions.  Once the error is corrected, it would compute tables for all QoS classes again. */
#include "shim.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <opensm/osm_partition.h>

#define LONGEST_HEAD 256 /* number of bytes of the head of a definition that are read */

/* Return whether the head of a partition's definition is invalid or is for another partition than the default
 * partition.  The head is the part before the colon, such as "Default=0x7fff, sl=1".  For an empty head, return 0.  The
 * function overwrites `head`. */
static int is_other(char *head)
{
    char *rest, *name = strtok_r(head, ",", &rest), *key, *end;

    while (name && isspace((unsigned char)*name))
        name++;
    if (!name || !*name)
        return 0;
    key = strchr(name, '=');
    if (!key && !isdigit((unsigned char)*name))
        return strncmp(name, "Default", strlen("Default")) != 0;
    key = key ? key + 1 : name;
    if ((strtoul(key, &end, 0) & 0x7fff) != 0x7fff)
        return 1;
    while (isspace((unsigned char)*end))
        end++;
    return *end != 0;
}

/* Return whether a partition file cannot be read, or has a definition of another partition than the default
 * partition. */
static int has_other_partitions(const char *path)
{
    FILE *file = fopen(path, "re");
    char head[LONGEST_HEAD];
    size_t used = 0;
    int c, comment = 0, in_head = 1, found = 0;

    if (!file)
        return 1;
    while (!found && (c = getc(file)) != EOF) {
        if (comment || c == '#') {
            comment = c != '\n';
        } else if (c == ';') {
            head[used] = 0;
            found = is_other(head);
            in_head = 1;
            used = 0;
        } else if (c == ':') {
            in_head = 0;
        } else if (in_head && used + 1 < sizeof(head)) {
            head[used++] = (char)c;
        }
    }
    head[used] = 0;
    found = found || is_other(head);
    fclose(file);
    return found;
}

/* Return whether OpenSM has only the default partition, with all ports as full members.  OpenSM sets up this partition
 * if there is no partition file, or if the file has an error. */
static int has_only_default(const osm_subn_t *subn)
{
    const cl_qmap_t *table = &subn->prtn_pkey_tbl;
    const osm_prtn_t *only = (const osm_prtn_t *)cl_qmap_head(table);

    return cl_qmap_count(table) == 1 && cl_ntoh16(only->pkey) == 0x7fff && !cl_map_count(&only->part_guid_tbl);
}

/* Return a mask of the SLs of the partitions that OpenSM has now. */
static uint32_t sls_now(const osm_subn_t *subn)
{
    const cl_qmap_t *table = &subn->prtn_pkey_tbl;
    uint32_t sls = 0;

    for (cl_map_item_t *item = cl_qmap_head(table); item != cl_qmap_end(table); item = cl_qmap_next(item))
        sls |= 1u << (((const osm_prtn_t *)item)->sl & 15);
    return sls;
}

/* Find out whether OpenSM has only the default partition although partition_config_file defines others, as after an
 * error in this file.  If not, remember the SLs of OpenSM's partitions.  This function is called in a sweep, with
 * OpenSM's exclusive lock held. */
void ibnue_partitions_refresh(struct ibnue_plugin *plugin)
{
    const osm_subn_t *subn = &plugin->osm->subn;
    const char *file = subn->opt.partition_config_file;
    int dropped = plugin->partitions_dropped;
    struct stat about;

    plugin->partitions_dropped = subn->opt.qos && file && has_only_default(subn) && !stat(file, &about)
                                 && has_other_partitions(file);
    if (!plugin->partitions_dropped)
        plugin->partition_sls = sls_now(subn);
    else if (!dropped && plugin->partition_sls)
        SAY(plugin, OSM_LOG_INFO,
            "ibnue: QoS: OpenSM has only the default partition, although %s defines others: the file has an error (PARSE"
            " ERROR above), or the ports of its partitions are not in the subnet; the SLs of the last partitions stay in"
            " use\n",
            file);
}

/* Return a mask of the SLs of all partitions.  If OpenSM has dropped partitions, for example because of an error in
 * their file, the mask also has the SLs of the last partitions before. */
uint32_t ibnue_partitions_sls(const struct ibnue_plugin *plugin)
{
    return sls_now(&plugin->osm->subn) | (plugin->partitions_dropped ? plugin->partition_sls : 0);
}
