/* Declarations that the C files of the plugin share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Include osm_config.h before all other headers of OpenSM.  The macros of osm_config.h enable members of
 * osm_subn_opt_t.  OpenSM's other headers need these macros, but do not include osm_config.h. */
#include <opensm/osm_config.h>

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_log.h>
#include <opensm/osm_opensm.h>

#include "layout.h"

#define IBNUE_WHY 1024 /* size in bytes of a buffer for a reason or a note */
/* Reason that is logged if Python cannot load the host.  The host then stores no reason in `note`.  So the
 * variable `note` gets this text before the host is called. */
#define IBNUE_PYTHON_FAILED \
    "Python cannot load ibnue inside of OpenSM, and OpenSM's standard error has the reason: install ibnue for this " \
    "Python again, run 'ibnue plugin install', and start OpenSM again"
/* Maximum size of the options' text in a request, in bytes. */
#define IBNUE_OPTIONS_ROOM 32768
/* Return codes of the functions in host.h.  cffi returns 0 if the call into Python fails, so success must not be 0. */
#define IBNUE_TOKEN 0x1b0e
#define IBNUE_PENDING 0x1b0f
#define IBNUE_LATE 0x1b10
#define IBNUE_REPLACED 0x1b11
#define IBNUE_HIDDEN __attribute__((visibility("hidden")))

#define SAY(plugin, level, ...) ibnue_say(plugin, level, __VA_ARGS__)

/* Memory that the plugin shares with a worker process.  Each new worker gets new memory and a new generation number. */
struct ibnue_memory {
    int fd;              /* descriptor of the shared file, -1: no file */
    /* number of the worker that uses the shared file; the host counts all workers that it has started, and counts the
     * shadow engine's workers separately */
    uint64_t generation;
    uint8_t *bytes;      /* [size], mapping of the file, NULL: the file is not mapped */
    size_t size;         /* size of the mapping in bytes */
};

/* The subnet's switches in the order of the rows of tables (by GUID).  Valid while OpenSM's lock is held. */
struct ibnue_rows {
    uint32_t switches;  /* number of switches */
    osm_switch_t **row; /* [switches], OpenSM's switches by row; the array has room for all nodes */
};

/* Number of LFT blocks, of 64 LIDs each, up to the highest unicast LID. */
#define IBNUE_BLOCKS 768

/* Knowledge about the LFT in one switch. */
struct ibnue_copy {
    uint64_t guid;               /* GUID of the switch, in host order */
    uint8_t known[IBNUE_BLOCKS]; /* for each LFT block: whether OpenSM's copy equals the block in the switch */
    /* for each LFT block: whether the plugin has requested the block from the switch, and has not yet examined the
     * answer */
    uint8_t asked[IBNUE_BLOCKS];
    uint8_t silent;  /* whether the switch has left a read request unanswered */
    /* whether the plugin treats all LFT blocks of the switch as empty without having read them: at a cold start, until
     * OpenSM has written the blocks */
    uint8_t assumed;
};

/* Knowledge about the LFTs in all switches. */
struct ibnue_copies {
    struct ibnue_copy *of; /* [count], one record for each switch, ascending by GUID */
    uint32_t count;        /* number of switches with a record */
    /* engine of the tables that the switches acknowledged last; NULL: unknown, for example because this SM has not
     * written any tables since it became master */
    struct osm_routing_engine *served;
};

/* Addresses of the nodes that ibnue_walk_open found when it last listed the subnet's nodes, in the order of OpenSM's
 * table of nodes.  The next call prefetches the memory at these addresses into the CPU's cache.  The addresses must
 * never be dereferenced, because OpenSM may have freed the nodes. */
struct ibnue_seen {
    const osm_node_t **node; /* [room], the addresses; the first `count` of them are valid */
    size_t count, room;      /* number of valid addresses, and length of the array `node` */
};

/* A node with its sort key. */
struct ibnue_place {
    uint64_t guid;    /* GUID of the node, in host order */
    osm_node_t *node; /* the node in OpenSM's memory */
};

/* A slot of the hash table that maps the address of a node to its index in a request. */
struct ibnue_entry {
    const osm_node_t *node; /* the node, NULL: the slot is empty */
    uint32_t device;        /* index of the node in ibnue_walk.place */
};

/* The subnet's nodes in the order of a request.  Valid while OpenSM's lock is held. */
struct ibnue_walk {
    struct ibnue_place *place;        /* [devices], switches by GUID, then all others by GUID */
    struct ibnue_entry *entry;        /* [mask + 1], hash table of the nodes, keyed by address */
    uint32_t switches, devices, mask; /* numbers of switches and of all nodes; `mask` + 1 is the number of hash table
                                       * slots, a power of 2 */
    size_t endports;                  /* upper bound of the number of end ports */
    const osm_subn_opt_t *opt;        /* OpenSM's options */
    size_t room;                      /* upper bound of the size of a request, in bytes */
};

/* The tables from which the callbacks path_sl and update_sl2vl answer: a private copy, which is not changed once
 * OpenSM can use it. */
struct ibnue_service {
    /* switches, lids: lengths of the arrays below.  vls: number of data VLs that the tables use.  sl_kind: a value of
     * enum ibnue_sl_kind, which states how `sl` is indexed.  sl2vl_ports: number of ports that each switch has in
     * `sl2vl`; 0: all switches and ports share one row of 16 VLs. */
    uint32_t switches, lids, vls, sl_kind, sl2vl_ports;
    uint64_t *guid;     /* [switches], GUIDs of the switches, ascending, in host order */
    int32_t *switch_of; /* [lids], row of the switch that delivers the LID, or -1 */
    uint8_t *sl;        /* SL of each path; the shape depends on sl_kind */
    uint8_t *sl2vl;     /* [16] or [switches][sl2vl_ports][sl2vl_ports][16], VL by switch, in port, out port and SL */
    struct ibnue_classes classes;  /* SLs and VLs of the QoS classes */
    int32_t *parent;               /* [switches], the multicast tree: next switch towards the root, or -1 */
    uint8_t *up_port;              /* [switches], port that leads to the switch's parent in the multicast tree */
    uint8_t *down_port;            /* [switches], port of the parent that leads to this switch, in the multicast tree */
    struct ibnue_service *retired; /* next element in the list of replaced tables, which threads may still read */
};

/* LFT entries that later rounds of this sweep still have to write. */
struct ibnue_rounds {
    struct ibnue_deferred *entry; /* [count], the entries, with the ports that their rounds write; NULL: none */
    struct ibnue_engine *engine;  /* engine whose tables are written */
    uint64_t plan;                /* number of the update schedule, as the worker identifies it */
    /* count: number of writes in `entry`.  left: number of these writes that set an entry to a port.  An entry can have
     * two writes: a removal, and in a later round the write of its new port. */
    uint32_t count, left;
    uint32_t wait_ms; /* milliseconds to wait before a round, so that packets leave the fabric */
    /* last: number of the last round, counted from 1.  wait_from: first round that begins with the wait `wait_ms`; all
     * later rounds begin with it, too; 0: no round does. */
    unsigned last, wait_from;
};

/* A request with its answer: a subnet and the tables for it. */
struct ibnue_tables {
    uint8_t *bytes;                    /* [room], the request, then the arrays of the answer; NULL: no request */
    size_t room;                       /* size of the buffer in bytes */
    int unfinished;                    /* whether some rounds of these tables may not have been written yet */
    uint64_t missing;                  /* number of pairs (switch, end port) without a path from the switch */
    const struct ibnue_engine *engine; /* engine that computed the tables */
    struct ibnue_answer answer;        /* head of the answer; its offsets refer to `bytes` */
};

/* The last request to the worker. */
struct ibnue_asked {
    uint8_t *bytes;     /* [room], private copy of the request without LFTs, which no other process can change */
    size_t room;        /* size of the buffer in bytes */
    uint64_t answer_at; /* offset of the answer in the shared memory, in bytes */
    uint64_t sequence;  /* number of the request */
    /* engine that has requested tables; NULL: the request was for HOQLife and VLStallCount of ports */
    const struct ibnue_engine *engine;
    int late;                          /* whether the worker has missed the deadline and still computes */
    int waited;                        /* milliseconds for which OpenSM has waited for the worker */
    /* first engine that has failed only so that OpenSM calls `engine`, NULL: none.  While the worker still
     * computes for `engine`, all engines before `engine` in OpenSM's list fail for this reason. */
    const struct ibnue_engine *left;
    int replaced; /* whether the worker has ended or stalled before its answer, and another worker is started */
};

/* The entries of the last proven tables that are still valid after the subnet has changed. */
struct ibnue_remains {
    uint8_t *bytes;             /* arrays of `answer`, NULL: there is no answer */
    struct ibnue_answer answer; /* head of the answer with the valid entries; its offsets refer to `bytes` */
    uint32_t dropped;           /* number of entries that became invalid */
    uint32_t moved;             /* number of end ports that are new, or cabled to another switch port than before */
    /* number of switches that have no edge towards the root of the multicast tree, because the edge was lost or the
     * switch is new */
    uint32_t cut_off;
    uint64_t pairs;  /* number of ordered pairs of end ports */
    uint64_t served; /* number of ordered pairs of end ports that have a path */
};

#define IBNUE_CODE 8   /* size in bytes of an error code with its final 0 */
#define IBNUE_CODES 64 /* maximum number of different error codes that are counted */

/* Numbers of errors and sweeps since OpenSM started. */
struct ibnue_status {
    uint64_t sweep; /* number of heavy sweeps that have begun */
    struct {
        char name[IBNUE_CODE]; /* error code, ends with 0 */
        uint64_t count;        /* number of log lines with this error code */
    } code[IBNUE_CODES]; /* [IBNUE_CODES], the error codes and their counts; the first `codes` elements are in use */
    unsigned codes;      /* number of entries of `code` in use */
    char error[2 * IBNUE_WHY + 512]; /* text of the last error line in OpenSM's log */
    atomic_flag busy;                /* spin lock that protects `code`, `codes`, `error` and `standby` */
    int standby; /* whether the host knows that OpenSM is a standby */
};

/* Result of OpenSM's last call of an engine for tables. */
struct ibnue_engine_status {
    int failing;       /* whether the engine had no new tables */
    uint64_t sequence; /* number of the last request that this engine has answered with tables for OpenSM */
};

/* A routing engine that the plugin has registered. */
struct ibnue_engine {
    struct ibnue_plugin *plugin;             /* the plugin to which this engine belongs */
    struct ibnue_engine_status status;       /* result of the engine's last call */
    /* number of times that this engine failed because its worker was late or was replaced; set to 0 when any ibnue
     * engine gets new tables */
    int lost;
    char *name;                              /* name of the engine in opensm.conf, with the prefix "ibnue-" */
    _Atomic(struct ibnue_service *) service; /* tables that answer OpenSM's queries, NULL: none */
    atomic_uint readers;                     /* number of threads that may read `service` or an element of `retired` */
    struct ibnue_service *retired;           /* list of replaced tables, which are freed when no thread reads them */
    struct ibnue_engine *next;               /* next engine of the plugin, NULL: this is the last engine */
};

/* Name of the buffer (`taken`, `last` or `remains` of the plugin) that holds the tables which OpenSM has received. */
enum ibnue_source { IBNUE_FROM_TAKEN, IBNUE_FROM_LAST, IBNUE_FROM_REMAINS };

/* Tables that OpenSM has received, with work that has to wait until the switches have acknowledged the LFTs. */
struct ibnue_unsettled {
    struct ibnue_engine *engine; /* engine that computed the tables; NULL: there are no such tables */
    struct ibnue_answer answer;  /* head of the answer; its offsets refer to the buffer that `source` names */
    enum ibnue_source source;    /* buffer that contains the tables */
    int rounds_open;             /* whether some rounds of these tables have not been written yet */
};

/* The thread that checks the worker between two sweeps. */
struct ibnue_watch {
    pthread_t thread;      /* handle of the thread */
    pthread_mutex_t lock;  /* protects the members whose comments name `lock` */
    pthread_cond_t change; /* signalled when `orders` changes or `ending` is set */
    int runs;              /* whether the thread was started */
    int wanted;            /* whether a sweep may be needed soon; protected by `lock` */
    int ending;            /* whether the thread has to end; protected by `lock` */
    /* number of times that a call of an engine has set `wanted`, `spared` and `fruitless` (the orders of the thread);
     * the thread finds out by this number whether it has got new orders; protected by `lock` */
    unsigned orders;
    /* whether the thread has requested a sweep, and no engine has been called since then; protected by `lock` */
    int asked;
    int fruitless;         /* number of consecutive failures of engines; protected by `lock` */
    /* whether the thread requests the next sweep even if no worker gets ready; set if OpenSM got old tables in the last
     * sweep, because OpenSM then did not try another engine; protected by `lock` */
    int spared;
    /* time (CLOCK_MONOTONIC) at which the thread requests the next sweep even if a late worker still computes; 0: the
     * thread waits for the worker; protected by `lock` */
    struct timespec until;
};

/* Attributes of a file.  If one attribute differs, the file has changed. */
struct ibnue_stamp {
    long seconds, nanoseconds; /* time of the last change of the file's content */
    long size;                 /* size in bytes, -1: the file does not exist */
    long inode;                /* inode number */
};

/* Entries that the callback update_vlarb has added to the VL arbitration tables of all ports in one sweep.  The
 * callback adds entries for VLs that can carry data, but have no entry with a weight in the administrator's
 * configuration. */
struct ibnue_arbitration {
    uint32_t vls;     /* VLs, as bits, for which entries were added to VL arbitration tables */
    uint32_t entries; /* number of added entries, at all ports together */
    uint32_t missing; /* number of entries for which the VL arbitration tables had no room, at all ports together */
};

/* State that the plugin keeps between two events of OpenSM. */
struct ibnue_plugin {
    osm_opensm_t *osm;                /* the OpenSM that has loaded the plugin */
    struct ibnue_engine *engines;     /* list of the registered engines */
    struct ibnue_memory memory;       /* memory shared with the worker */
    struct ibnue_rows rows;           /* the subnet's switches by row */
    struct ibnue_copies copies;       /* knowledge about the LFTs in the switches */
    struct ibnue_seen seen;           /* addresses that the next call of ibnue_walk_open prefetches */
    uint64_t sequence;                /* number of the last request */
    struct ibnue_asked asked;         /* the last request to the worker */
    struct ibnue_tables taken;        /* the worker's last answer, which is checked before it is published */
    struct ibnue_tables last;         /* tables to fall back on: the last tables that are proven free of credit loops */
    struct ibnue_remains remains;     /* the entries of `last` that are still valid on a changed subnet */
    struct ibnue_unsettled unsettled; /* tables with work that has to wait for acknowledgements */
    struct ibnue_watch watch;         /* the thread that waits for a worker */
    struct ibnue_rounds rounds;       /* entries that later rounds still have to write */
    /* whether the layout of OpenSM's structs of nodes, switches and ports was compared with the headers of the build */
    int layout_known;
    int stopped;      /* whether a round of the last update was not acknowledged */
    /* attributes of the QoS policy file when it was last read */
    struct ibnue_stamp policy_file;
    uint32_t policy_sls; /* mask of the SLs in the last QoS policy without an error; 0: there was no such policy */
    /* whether the QoS policy of `policy_sls` has a QoS level without an SL, so that SLs of partitions apply */
    int policy_open;
    /* mask of the SLs of OpenSM's partitions, from the last sweep in which `partitions_dropped` was 0 */
    uint32_t partition_sls;
    /* whether OpenSM has dropped the partitions of partition_config_file, for example because of a file error */
    int partitions_dropped;
    /* changes of the VL arbitration tables in this sweep, and in the sweep before */
    struct ibnue_arbitration arbitration, last_arbitration;
    /* number of SL-to-VL tables that OpenSM has cut in this sweep, and in the sweep before.  A table is cut if OpenSM
     * masks its VLs, because the port has fewer operational VLs than the table uses */
    uint32_t narrow, last_narrow;
    /* number of cut tables in the last log line with the error code IBN40; 0: no such line was logged since OpenSM
     * began to cut tables */
    uint32_t reported_narrow;
    struct ibnue_policies *policies;                        /* values that port rules set, NULL: none */
    struct ibnue_status status;                             /* counts of errors and sweeps for the status file */
    /* memory that is shared only with the shadow engine's worker */
    struct ibnue_memory shadow;
};

/* Return the milliseconds of CLOCK_MONOTONIC since `start`. */
static inline double ibnue_ms_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)(now.tv_sec - start->tv_sec) + 1e-6 * (double)(now.tv_nsec - start->tv_nsec);
}

/* Return the form of a noun after a number in a log line: `one` if `count` is 1, otherwise `many`. */
static inline const char *ibnue_noun(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* The functions of walk.c and collect.c, declared next, convert OpenSM's subnet to arrays.  A function with a parameter
 * `why` returns 0, or -1 with the reason in `why`. */
IBNUE_HIDDEN int ibnue_walk_open(struct ibnue_plugin *plugin, struct ibnue_walk *walk, char *why);
IBNUE_HIDDEN void ibnue_walk_close(struct ibnue_walk *walk);
IBNUE_HIDDEN void ibnue_walk_ahead(const struct ibnue_walk *walk, uint32_t device);
IBNUE_HIDDEN int ibnue_device_of(const struct ibnue_walk *walk, const osm_node_t *node);
IBNUE_HIDDEN void ibnue_request_write(struct ibnue_plugin *plugin, const struct ibnue_walk *walk, uint8_t *bytes);

/* Write into `bytes` those options of opensm.conf that OpenSM does not apply to tables of a plugin (see options.c). */
IBNUE_HIDDEN size_t ibnue_options_write(const struct ibnue_plugin *plugin, char *bytes, size_t room);

/* The functions of readback.c, declared next, find out which LFTs the switches have. */
IBNUE_HIDDEN void ibnue_copies_discovered(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_copies_read(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_copies_written(struct ibnue_plugin *plugin);
IBNUE_HIDDEN uint32_t ibnue_copies_origin(const struct ibnue_plugin *plugin);
IBNUE_HIDDEN size_t ibnue_copies_room(const struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_copies_write(const struct ibnue_plugin *plugin, uint8_t *bytes);
IBNUE_HIDDEN void ibnue_copies_drop(struct ibnue_plugin *plugin);

/* The functions of qos.c, declared next, find the SLs that the administrator's QoS policy assigns, and complete the VL
 * arbitration tables. */
IBNUE_HIDDEN void ibnue_qos_refresh(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_qos_sls(const struct ibnue_plugin *plugin, uint32_t *policy, uint32_t *partitions);
IBNUE_HIDDEN void ibnue_update_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
                                     unsigned length, unsigned block_number);
IBNUE_HIDDEN void ibnue_arbitration_report(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_sl2vl_report(struct ibnue_plugin *plugin);

/* The function of embed.c, declared next, starts the Python interpreter inside OpenSM. */
IBNUE_HIDDEN int ibnue_python_start(char *why);

/* The functions of worker.c, declared next, map the memory that is shared with the worker, and wait for its answer. */
IBNUE_HIDDEN int ibnue_memory_map(struct ibnue_memory *memory, int fd, uint64_t generation, size_t least, char *why);
IBNUE_HIDDEN void ibnue_memory_prepare(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_memory_unmap(struct ibnue_memory *memory);
IBNUE_HIDDEN int ibnue_wait_for_worker(struct ibnue_plugin *plugin, char *note);

/* The functions of answer.c, declared next, copy and check the worker's answer. */
IBNUE_HIDDEN uint64_t ibnue_sl_bytes(const struct ibnue_answer *answer);
IBNUE_HIDDEN uint64_t ibnue_sl2vl_bytes(const struct ibnue_answer *answer);
IBNUE_HIDDEN int ibnue_answer_take(struct ibnue_plugin *plugin, char *why);
IBNUE_HIDDEN int ibnue_tables_room(struct ibnue_tables *tables, size_t size);
IBNUE_HIDDEN void ibnue_tables_drop(struct ibnue_tables *tables);
IBNUE_HIDDEN int ibnue_tables_fit(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer,
                                  const uint8_t *bytes, char *why);

/* The functions of publish.c, declared next, give a checked answer to OpenSM. */
IBNUE_HIDDEN int ibnue_publish(struct ibnue_engine *engine, const struct ibnue_answer *answer, const uint8_t *bytes,
                               char *why);
IBNUE_HIDDEN void ibnue_spread_port0(const struct ibnue_plugin *plugin);
IBNUE_HIDDEN uint8_t ibnue_path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid);
IBNUE_HIDDEN void ibnue_update_sl2vl(void *context, osm_physp_t *port, uint8_t in_port, uint8_t out_port,
                                     ib_slvl_table_t *table);
IBNUE_HIDDEN void ibnue_service_drop(struct ibnue_engine *engine);
IBNUE_HIDDEN const struct ibnue_service *ibnue_service_hold(struct ibnue_engine *engine);
IBNUE_HIDDEN void ibnue_service_release(struct ibnue_engine *engine);
IBNUE_HIDDEN int ibnue_row_of_guid(const struct ibnue_service *service, uint64_t guid);

/* The function of route.c, declared next, sets the callbacks of a routing engine. */
IBNUE_HIDDEN int ibnue_engine_set_up(struct osm_routing_engine *re, struct osm_opensm *osm);

/* The functions of abi.c and build.c, declared next, compare the structs of the running OpenSM with the headers of the
 * build. */
IBNUE_HIDDEN int ibnue_abi_check_opensm(const osm_opensm_t *osm, int *log, char *why);
IBNUE_HIDDEN int ibnue_abi_check_engine(const struct osm_routing_engine *re, const char *prefix);
IBNUE_HIDDEN int ibnue_abi_fits(struct ibnue_plugin *plugin, char *why);
IBNUE_HIDDEN uint64_t ibnue_abi_hash(void);

/* The functions of rounds.c, declared next, write tables to the switches in rounds. */
IBNUE_HIDDEN void ibnue_rounds_begin(struct ibnue_engine *engine, const struct ibnue_answer *answer,
                                     const uint8_t *bytes, int again);
IBNUE_HIDDEN void ibnue_rounds_go_on(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_rounds_drop(struct ibnue_plugin *plugin);

/* The functions of status.c, declared next, write log lines, count errors, and report facts for the status file. */
IBNUE_HIDDEN void ibnue_say(struct ibnue_plugin *plugin, osm_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
IBNUE_HIDDEN int ibnue_status_asked(struct ibnue_engine *engine, int code);
IBNUE_HIDDEN void ibnue_status_event(struct ibnue_plugin *plugin, osm_epi_event_id_t event);
IBNUE_HIDDEN void ibnue_status_watch(struct ibnue_plugin *plugin);

/* The functions of policies.c, declared next, set HOQLife and VLStallCount of single ports. */
IBNUE_HIDDEN void ibnue_policies_apply(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_policies_drop(struct ibnue_plugin *plugin);
IBNUE_HIDDEN int ibnue_request_with_tables(struct ibnue_plugin *plugin, struct ibnue_memory *memory, int fd,
                                           uint64_t generation, char *why);

/* The function of shadow.c, declared next, lets a worker compare the tables in force with the tables of a shadow
 * engine. */
IBNUE_HIDDEN void ibnue_shadow_look(struct ibnue_plugin *plugin);

/* The functions of last.c, declared next, keep the last proven tables, which are used again when an engine fails. */
IBNUE_HIDDEN void ibnue_last_keep(struct ibnue_plugin *plugin);
IBNUE_HIDDEN uint8_t *ibnue_subnet_now(struct ibnue_plugin *plugin);
IBNUE_HIDDEN int ibnue_same_subnet(const uint8_t *one, const uint8_t *other);
IBNUE_HIDDEN int ibnue_comes_later(const struct ibnue_engine *engine, const struct ibnue_engine *other);
IBNUE_HIDDEN int ibnue_another_follows(const struct ibnue_engine *engine);
IBNUE_HIDDEN int ibnue_last_serve(struct ibnue_engine *engine, char *what);

/* The functions of remains.c, declared next, find the entries of the last proven tables that are still valid after the
 * subnet has changed. */
IBNUE_HIDDEN int ibnue_remains_make(struct ibnue_plugin *plugin, const uint8_t *now, char *why);
IBNUE_HIDDEN void ibnue_remains_drop(struct ibnue_remains *remains);

/* The functions of partitions.c, declared next, find the SLs of the administrator's partitions. */
IBNUE_HIDDEN void ibnue_partitions_refresh(struct ibnue_plugin *plugin);
IBNUE_HIDDEN uint32_t ibnue_partitions_sls(const struct ibnue_plugin *plugin);

/* The functions of settle.c, declared next, do the work that has to wait until the switches have acknowledged the
 * LFTs. */
IBNUE_HIDDEN void ibnue_settle_later(struct ibnue_engine *engine, const struct ibnue_answer *answer,
                                     enum ibnue_source source);
IBNUE_HIDDEN void ibnue_settle(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_settle_taken(struct ibnue_plugin *plugin);

/* The function of plugin.c, declared next, checks the worker, and logs the lines of the host. */
IBNUE_HIDDEN void ibnue_worker_check(struct ibnue_plugin *plugin);

/* The functions of watch.c, declared next, check the worker between sweeps, and request sweeps. */
IBNUE_HIDDEN void ibnue_watch_begin(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_watch_prepare(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_watch_start(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_watch_spare(struct ibnue_plugin *plugin, int longest_pause);
IBNUE_HIDDEN void ibnue_watch_spare_no_more(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_watch_calm(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_watch_end(struct ibnue_plugin *plugin);

/* The function of multicast.c, declared next, builds multicast trees. */
IBNUE_HIDDEN ib_api_status_t ibnue_multicast(void *context, osm_mgrp_box_t *group);
