/* Format of requests and answers in the memory that the plugin in OpenSM shares with the worker process.
 * osm_plugin/snapshot.py and osm_plugin/answer.py define NumPy dtypes that must equal these structs.  A test compares
 * the dtypes with the structs. */
#pragma once

#include <stdint.h>

#define IBNUE_REQUEST_MAGIC UINT64_C(0x3171657265756e69)
#define IBNUE_ANSWER_MAGIC UINT64_C(0x31736e6165756e69)

/* Kind of a device. */
enum ibnue_kind { IBNUE_SWITCH = 0, IBNUE_CA = 1, IBNUE_ROUTER = 2 };
/* Kind of the engine whose tables the switches acknowledged last: unknown, an ibnue engine, or another engine. */
enum ibnue_served { IBNUE_SERVED_NOT_SAID = 0, IBNUE_SERVED_OURS = 1, IBNUE_SERVED_OTHER = 2 };
/* How the SL table of an answer is indexed: by destination LID; by source switch and destination LID; or by source LID
 * and destination LID. */
enum ibnue_sl_kind { IBNUE_SL_BY_DESTINATION = 0, IBNUE_SL_BY_SWITCH = 1, IBNUE_SL_BY_LIDS = 2 };

/* Head of a request, at offset 0 of the shared memory.  All offsets (`..._at` and `end`) are in bytes from the start
 * of the memory.  Devices are in this order: switches by GUID, then CAs and routers by GUID. */
struct ibnue_request {
    uint64_t magic; /* always IBNUE_REQUEST_MAGIC, which identifies a request */
    uint64_t sequence; /* number of the request, which the answer repeats */
    uint32_t switches; /* number of switches S */
    uint32_t devices;  /* number of devices: switches, CAs and routers */
    uint32_t endports; /* number of cabled ports of CAs and routers */
    uint32_t cables; /* number of cables */
    uint32_t data_vls; /* number of data VLs that OpenSM sets up on every port of the fabric */
    uint32_t qos;      /* whether OpenSM runs with QoS.  Without QoS, OpenSM writes no SL-to-VL tables */
    uint64_t device_at;  /* offset of struct ibnue_device[devices] */
    uint64_t endport_at; /* offset of struct ibnue_endport[endports] */
    uint64_t cable_at;   /* offset of struct ibnue_cable[cables] */
    /* offset of a text: one line "key value" for each option of opensm.conf that differs from its default */
    uint64_t conf_at;
    uint64_t conf_bytes; /* length of the text at conf_at in bytes, without a final 0 */
    uint32_t lids;       /* number of columns of the LFTs in the switches, 0 if the request has no LFTs */
    uint32_t served;     /* enum ibnue_served: kind of the engine whose tables the switches acknowledged last */
    /* offset of uint16[switches], the highest LID for which each switch forwards packets (LinearFDBTop) */
    uint64_t top_at;
    /* offset of uint8[switches][LFT blocks]: 1 if the LFT block at lft_at is known to equal the block in the switch;
     * 0 if the block in the switch is unknown */
    uint64_t known_at;
    /* offset of uint8[switches][lids], the LFTs in the switches.  Values in unknown blocks have no meaning */
    uint64_t lft_at;
    uint64_t end;        /* offset at which the request ends */
};

/* A switch, CA or router. */
struct ibnue_device {
    uint64_t guid; /* node GUID in host order */
    uint16_t lid;  /* base LID of a switch's port 0, 0 for CAs and routers */
    uint8_t kind;  /* enum ibnue_kind: switch, CA or router */
    uint8_t ports; /* number of ports, without port 0 */
    uint8_t lmc;   /* LMC of a switch's port 0 */
    uint8_t unused[3]; /* padding */
    char name[72]; /* node description, ends with 0 */
};

/* A cabled port of a CA or router.  End ports are sorted by device, then by port. */
struct ibnue_endport {
    uint64_t guid;   /* port GUID in host order */
    uint32_t device; /* index of the port's device */
    uint16_t lid;    /* base LID, 0 if the port has none */
    uint8_t port;    /* number of the port */
    uint8_t lmc; /* LMC of the port */
};

/* A cable.  Each cable occurs once.  Its first end is the end with the smaller device index or, if both ends are at one
 * device, with the smaller port. */
struct ibnue_cable {
    uint32_t device[2]; /* indexes of the devices at both ends */
    uint8_t port[2]; /* port numbers at both ends */
    uint8_t width;     /* link width: number of physical lanes */
    uint8_t throttled; /* whether the cable is slower than its ports allow, and avoid_throttled_links is set */
    /* whether the cable joins two switches, and OpenSM considers it unhealthy.  Only entries that are already in the
     * switches may use such a cable. */
    uint8_t sick;
    uint8_t unused[3]; /* padding */
    double speed; /* speed in Gb/s per physical lane */
};

/* Head of an answer.  The head begins at the first multiple of 4096 at or after ibnue_request.end.  All offsets
 * (`..._at` and `end`) are in bytes from the start of the memory. */
struct ibnue_answer {
    uint64_t magic; /* always IBNUE_ANSWER_MAGIC, which identifies an answer */
    uint64_t sequence; /* number of the request that is answered */
    uint32_t switches; /* number of switches, as in the request */
    uint32_t lids;     /* number of columns of the LFTs */
    uint32_t vls;      /* number of data VLs that the tables use */
    uint32_t sl_kind;  /* enum ibnue_sl_kind: how the SL table is indexed */
    /* number of in-ports, and also of out-ports, of each switch in the SL-to-VL tables; 0: a single table of 16 VLs
     * applies to all switches */
    uint32_t sl2vl_ports;
    uint32_t certified; /* whether the tables are proven free of credit loops */
    uint64_t lft_at;   /* offset of uint8[switches][lids], the LFTs */
    /* offset of uint8[switches][lids], number of hops to the switch that delivers the LID, 255: no path */
    uint64_t hops_at;
    /* offset of the SL of each path: uint8[lids], uint8[switches][lids] or uint8[source lids][lids], depending on
     * `sl_kind` */
    uint64_t sl_at;
    /* offset of int32[lids], row of the switch that delivers the LID, or -1 */
    uint64_t switch_of_at;
    /* offset of uint8[16] or uint8[switches][in ports][out ports][16], VL of each SL; 15: packets are dropped */
    uint64_t sl2vl_at;
    uint64_t parent_at;    /* offset of int32[switches], the multicast tree: next switch towards the root, or -1 */
    uint64_t up_port_at;   /* offset of uint8[switches], port that leads to the switch's parent in the multicast tree */
    uint64_t down_port_at; /* offset of uint8[switches], port of the parent that leads to the switch */
    uint64_t classes_at;   /* offset of struct ibnue_classes */
    uint64_t deferred_at;  /* offset of struct ibnue_deferred[deferred] */
    /* number of the update schedule.  The plugin reports the progress of the schedule with this number. */
    uint64_t plan;
    uint32_t deferred;     /* number of writes of LFT entries after round 1; 0: round 1 writes all entries */
    /* milliseconds to wait after the acknowledgements of a round, before the next round, so that packets leave the
     * fabric */
    uint32_t round_wait;
    /* number of a round, counted from 1: OpenSM waits for `round_wait` before this round and before each later round.
     * 0: OpenSM never waits for `round_wait` */
    uint32_t wait_from;
    uint32_t unused; /* padding */
    uint64_t end;          /* offset at which the answer ends */
};

/* SLs and VLs of the QoS classes.  Each SL of OpenSM's QoS policy is a QoS class.  A QoS class has one SL for each
 * layer (VL) of the engine's tables. */
struct ibnue_classes {
    /* index: 16 * (SL that OpenSM proposes for a path, the hint) + (SL that the tables have for the path); value: SL
     * that the path gets */
    uint8_t sl_for[256];
    /* index: a VL of the tables; value: the VL of the QoS policy from which it gets its arbitration weight, 255 for a
     * VL without data */
    uint8_t vl_like[16];
};

/* A write of an LFT entry after round 1.  The array has two structs for an entry that is removed in one round after
 * round 1, and gets its new port in a later round.  The struct with the later round comes first. */
struct ibnue_deferred {
    uint32_t row;  /* row of the switch that has the LFT entry */
    uint16_t lid; /* LID of the LFT entry */
    uint8_t round; /* round in which the entry is written, from 2 on */
    uint8_t port;  /* port that the entry has until the round `round`, 255: no port */
};

/* Name that the worker gets instead of an engine's name, if the shim requests values of ports (HOQLife, VLStallCount).
 * Then the memory has three parts: the request; at the next multiple of 8 bytes, an ibnue_policy_request; and LFTs.
 * ibnue_request.end is the end of these LFTs. */
#define IBNUE_POLICIES "policies"
#define IBNUE_POLICY_REQUEST_MAGIC UINT64_C(0x31716c7065756e69)
#define IBNUE_POLICY_ANSWER_MAGIC UINT64_C(0x31616c7065756e69)

/* A request by which the shim asks the worker for the values (HOQLife, VLStallCount) that ports should have by the
 * rules.  The struct is followed by uint8[switches][lids], the LFTs that the switches have acknowledged. */
struct ibnue_policy_request {
    uint64_t magic; /* always IBNUE_POLICY_REQUEST_MAGIC */
    uint32_t lids; /* number of columns of the LFTs */
    uint32_t unused; /* padding */
};

/* Head of the answer to a policy request, at the offset where an ibnue_answer would be. */
struct ibnue_policy_answer {
    uint64_t magic; /* always IBNUE_POLICY_ANSWER_MAGIC */
    uint64_t sequence; /* number of the request that is answered */
    uint32_t switches; /* number of switches, as in the request */
    uint32_t unused; /* padding */
    /* offset of uint16[switches][256], one value for each port.  Bits 0 to 4: HOQLife.  Bits 5 to 7: VLStallCount.
     * Bits 8 to 15: a mask of bits 0 to 7, in which bit 8 + n is 1 if the rules determine bit n */
    uint64_t want_at;
};
