/* What the shim and the worker lay into the memory they share.  Little more than arrays; osm_plugin/snapshot.py and
 * osm_plugin/answer.py have the same structures as numpy dtypes, and tests hold the two together. */
#ifndef IBNUE_LAYOUT_H
#define IBNUE_LAYOUT_H

#include <stdint.h>

#define IBNUE_REQUEST_MAGIC UINT64_C(0x3171657265756e69)
#define IBNUE_ANSWER_MAGIC UINT64_C(0x31736e6165756e69)

enum ibnue_kind { IBNUE_SWITCH = 0, IBNUE_CA = 1, IBNUE_ROUTER = 2 };
enum ibnue_sl_kind { IBNUE_SL_BY_DESTINATION = 0, IBNUE_SL_BY_SWITCH = 1, IBNUE_SL_BY_LIDS = 2 };

/* At offset 0.  Offsets are in bytes from there; devices are the switches by GUID, then the CAs and routers by GUID. */
struct ibnue_request {
    uint64_t magic;
    uint64_t sequence;
    uint32_t switches;
    uint32_t devices;
    uint32_t endports;
    uint32_t cables;
    uint32_t data_vls; /* data VLs that OpenSM will set up on every port of the fabric */
    uint32_t qos;      /* whether OpenSM asks for SL-to-VL tables at all */
    uint64_t device_at;
    uint64_t endport_at;
    uint64_t cable_at;
    uint64_t end;
};

struct ibnue_device {
    uint64_t guid;
    uint16_t lid;
    uint8_t kind;
    uint8_t ports;
    uint8_t lmc;
    uint8_t unused[3];
    char name[72];
};

struct ibnue_endport {
    uint64_t guid;
    uint32_t device;
    uint16_t lid;
    uint8_t port;
    uint8_t lmc;
};

/* A cable, once: the end with the smaller (device, port) first. */
struct ibnue_cable {
    uint32_t device[2];
    uint8_t port[2];
    uint8_t width;
    uint8_t unused[5];
    double speed; /* Gb/s of one lane */
};

/* At the first multiple of 4096 from ibnue_request.end on. */
struct ibnue_answer {
    uint64_t magic;
    uint64_t sequence;
    uint32_t switches;
    uint32_t lids;
    uint32_t vls;
    uint32_t sl_kind;
    uint32_t sl2vl_ports; /* 0: one row of 16 for the whole fabric */
    uint32_t certified; /* proven free of credit loops */
    uint64_t lft_at;   /* uint8[switches][lids] */
    uint64_t hops_at;  /* uint8[switches][lids] */
    uint64_t sl_at;    /* uint8, shape by sl_kind */
    uint64_t switch_of_at; /* int32[lids], row of the switch that a LID is cabled to, or -1 */
    uint64_t sl2vl_at; /* uint8[16] or uint8[switches][ports][ports][16] */
    uint64_t parent_at;    /* int32[switches], the multicast tree: next switch towards the root, or -1 */
    uint64_t up_port_at;   /* uint8[switches], the port there */
    uint64_t down_port_at; /* uint8[switches], the parent's port back */
    uint64_t held_at;      /* struct ibnue_held[held] */
    uint64_t plan;         /* number of the rounds, to tell how far they got */
    uint32_t held;
    uint32_t round_wait;   /* milliseconds for which a round waits, over and above acknowledgements ... */
    uint32_t wait_from;    /* ... from this one on (0: none does) */
    uint32_t unused;
    uint64_t end;
};

/* An entry of lft that is not written before its round.  One that has another port in between is there twice, the later
 * round first. */
struct ibnue_held {
    uint32_t row;
    uint16_t lid;
    uint8_t round; /* from 2 on */
    uint8_t port;  /* until then */
};

/* Asked for instead of an engine: behind the request, at the next multiple of 8, and its end moved behind it. */
#define IBNUE_POLICIES "policies"
#define IBNUE_POLICY_REQUEST_MAGIC UINT64_C(0x31716c7065756e69)
#define IBNUE_POLICY_ANSWER_MAGIC UINT64_C(0x31616c7065756e69)

struct ibnue_policy_request {
    uint64_t magic;
    uint32_t lids; /* uint8[switches][lids] follows: the forwarding tables as the switches have them */
    uint32_t unused;
};

/* In the place of ibnue_answer. */
struct ibnue_policy_answer {
    uint64_t magic;
    uint64_t sequence;
    uint32_t switches;
    uint32_t unused;
    uint64_t want_at; /* uint16[switches][256]: VLStallCount << 5 | HOQLife, and above it the bits that count */
};

#endif
