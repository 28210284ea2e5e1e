/* Inside of the shim: what its C files share. */
#ifndef IBNUE_SHIM_H
#define IBNUE_SHIM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* First of all of OpenSM's: it switches members of osm_subn_opt_t on, and the headers that need it leave it out. */
#include <opensm/osm_config.h>

#include <opensm/osm_log.h>
#include <opensm/osm_opensm.h>

#include "layout.h"

#define IBNUE_WHY 1024
/* A call into Python that fails to start returns 0.  So no success is ever 0. */
#define IBNUE_TOKEN 0x1b0e
#define IBNUE_PENDING 0x1b0f
#define IBNUE_HIDDEN __attribute__((visibility("hidden")))

#define SAY(plugin, level, ...) osm_log(&(plugin)->osm->log, level, __VA_ARGS__)

/* The memory shared with the worker of the moment.  A new worker gets new memory, and with it a new generation. */
struct ibnue_memory {
    int fd;
    uint64_t generation;
    uint8_t *bytes;
    size_t size;
};

/* The subnet's switches in the order of the tables' rows (by GUID), valid while OpenSM's lock is held. */
struct ibnue_rows {
    uint32_t switches;
    osm_switch_t **row;
    size_t room;
};

/* Where nodes were found at the last walk, in its order: a hint where to fetch from, never to be followed. */
struct ibnue_seen {
    const osm_node_t **node;
    size_t count, room;
};

/* A node by its GUID in host order, and by its address. */
struct ibnue_place {
    uint64_t guid;
    osm_node_t *node;
};

struct ibnue_entry {
    const osm_node_t *node; /* NULL: none */
    uint32_t device;
};

/* The subnet's nodes in the order of a request, valid while OpenSM's lock is held. */
struct ibnue_walk {
    struct ibnue_place *place; /* [devices], switches by GUID, then all others by GUID */
    struct ibnue_entry *entry; /* [mask + 1], the same by the hash of the address */
    uint32_t switches, devices, mask;
    size_t endports; /* at most */
    size_t room;     /* bytes that a request takes at most */
};

/* What path_sl and update_sl2vl answer from: an own copy, never changed once it can be seen. */
struct ibnue_service {
    uint32_t switches, lids, vls, sl_kind, sl2vl_ports;
    uint64_t *guid;       /* [switches], ascending, host order */
    int32_t *switch_of;   /* [lids], row of the switch that a LID is cabled to, or -1 */
    uint8_t *sl;
    uint8_t *sl2vl;
    int32_t *parent;      /* [switches], the multicast tree: next switch towards the root, or -1 */
    uint8_t *up_port;     /* [switches], the port there */
    uint8_t *down_port;   /* [switches], the parent's port back */
    struct ibnue_service *retired; /* next in the list of those that wait for their last reader */
};

/* Entries that are still to be written in this sweep. */
struct ibnue_rounds {
    struct ibnue_held *entry; /* with the port that they are to have; NULL: nothing is left */
    struct ibnue_engine *engine;
    uint64_t plan;
    uint32_t count, left; /* of what is to be written, and of entries that it is for */
    uint32_t wait_ms;
    unsigned last, wait_from; /* rounds; 0: none waits */
};

/* What was published last, if it was proven free of credit loops: the shared memory as it was then. */
struct ibnue_last {
    uint8_t *bytes;
    size_t room;
    int unfinished; /* whether rounds of it may not have been written */
    struct ibnue_answer answer;
};

struct ibnue_engine {
    struct ibnue_plugin *plugin;
    char *name;
    struct ibnue_last last;
    _Atomic(struct ibnue_service *) service;
    atomic_uint readers;
    struct ibnue_service *retired;
    struct ibnue_engine *next;
};

/* Tables that were published, and what is still to be done about them. */
struct ibnue_unsettled {
    struct ibnue_engine *engine; /* NULL: nothing */
    struct ibnue_answer answer;
    int from_last; /* its bytes are in engine->last, otherwise in the shared memory */
    int rounds_open; /* whether some of its rounds are not in the switches */
};

struct ibnue_plugin {
    osm_opensm_t *osm;
    struct ibnue_engine *engines;
    struct ibnue_memory memory;
    struct ibnue_rows rows;
    struct ibnue_seen seen;
    uint64_t sequence;
    struct ibnue_unsettled unsettled;
    struct ibnue_rounds rounds;
    int stopped; /* the last rounds did not go through */
    struct ibnue_policies *policies; /* what ports are wished to have, as last said */
};

static inline double ibnue_ms_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)(now.tv_sec - start->tv_sec) + 1e-6 * (double)(now.tv_nsec - start->tv_nsec);
}

/* walk.c, collect.c: the subnet as arrays.  All that return something return 0, or -1 with the reason in `why`. */
IBNUE_HIDDEN int ibnue_walk_open(struct ibnue_plugin *plugin, struct ibnue_walk *walk, char *why);
IBNUE_HIDDEN void ibnue_walk_close(struct ibnue_walk *walk);
IBNUE_HIDDEN void ibnue_walk_ahead(const struct ibnue_walk *walk, uint32_t device);
IBNUE_HIDDEN int ibnue_device_of(const struct ibnue_walk *walk, const osm_node_t *node);
IBNUE_HIDDEN void ibnue_request_write(struct ibnue_plugin *plugin, const struct ibnue_walk *walk, uint8_t *bytes);

/* embed.c */
IBNUE_HIDDEN int ibnue_python_start(char *why);

/* worker.c: the memory shared with the worker, and waiting for it. */
IBNUE_HIDDEN int ibnue_memory_map(struct ibnue_memory *memory, int fd, uint64_t generation, size_t least, char *why);
IBNUE_HIDDEN void ibnue_memory_prepare(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_memory_unmap(struct ibnue_memory *memory);
IBNUE_HIDDEN int ibnue_wait_for_worker(struct ibnue_plugin *plugin, char *note);

/* answer.c: what the worker answers, checked. */
IBNUE_HIDDEN uint64_t ibnue_sl_bytes(const struct ibnue_answer *answer);
IBNUE_HIDDEN uint64_t ibnue_sl2vl_bytes(const struct ibnue_answer *answer);
IBNUE_HIDDEN int ibnue_answer_check(const struct ibnue_plugin *plugin, struct ibnue_answer *copy, char *why);
IBNUE_HIDDEN int ibnue_tables_fit(const struct ibnue_plugin *plugin, const struct ibnue_answer *answer,
                                  const uint8_t *bytes, char *why);
IBNUE_HIDDEN size_t ibnue_answer_extent(const struct ibnue_answer *answer);

/* publish.c: from a checked answer into OpenSM. */
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

/* route.c: an engine as OpenSM calls it. */
IBNUE_HIDDEN int ibnue_engine_set_up(struct osm_routing_engine *re, struct osm_opensm *osm);
IBNUE_HIDDEN int ibnue_same_layout(const osm_opensm_t *osm);

/* rounds.c: tables that are written bit by bit. */
IBNUE_HIDDEN void ibnue_rounds_begin(struct ibnue_engine *engine, const struct ibnue_answer *answer,
                                     const uint8_t *bytes, int again);
IBNUE_HIDDEN void ibnue_rounds_go_on(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_rounds_drop(struct ibnue_plugin *plugin);

/* policies.c */
IBNUE_HIDDEN void ibnue_policies_apply(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_policies_drop(struct ibnue_plugin *plugin);

/* last.c: what an engine that fails falls back on. */
IBNUE_HIDDEN void ibnue_last_keep(struct ibnue_engine *engine, const struct ibnue_answer *answer);
IBNUE_HIDDEN int ibnue_last_holds(const struct ibnue_engine *engine);
IBNUE_HIDDEN void ibnue_last_drop(struct ibnue_engine *engine);

/* settle.c: what can wait until the tables are on their way. */
IBNUE_HIDDEN void ibnue_settle_later(struct ibnue_engine *engine, const struct ibnue_answer *answer, int from_last);
IBNUE_HIDDEN void ibnue_settle(struct ibnue_plugin *plugin);
IBNUE_HIDDEN void ibnue_settle_memory(struct ibnue_plugin *plugin);

/* multicast.c */
IBNUE_HIDDEN ib_api_status_t ibnue_multicast(void *context, osm_mgrp_box_t *group);

#endif
