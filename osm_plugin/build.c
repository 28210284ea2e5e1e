/* Store in the library the versions and headers from which it was built.  The data can be read from the file without
 * loading the library. */
#include "shim.h"

#include <opensm/osm_event_plugin.h>
#include <opensm/osm_mcast_mgr.h>
#include <opensm/osm_multicast.h>
#include <opensm/osm_partition.h>
#include <opensm/osm_qos_policy.h>
#include <opensm/osm_version.h>

#include "abi.h"

#define STRUCT_ROW(name) {#name, 0, sizeof(name)},
#define MEMBER_ROW(name, member) {#name "." #member, offsetof(name, member), sizeof(((name *)0)->member)},
#define ONE(...) +1

/* osm_plugin/build_info.py searches the library for the 16 bytes of `magic`, and reads this struct from that position
 * on. */
struct build {
    char magic[16]; /* marks the beginning of this struct in the library file */
    char opensm[32];    /* version of OpenSM's headers, OSM_VERSION */
    char package[32];   /* version of ibnue from which the library was built */
    char protocol[32];  /* result of protocol() in osm_plugin/build_info.py when the library was built */
    char python[512];   /* path of the Python interpreter that runs the worker */
    uint32_t rows;      /* number of structs and members in `row` */
    struct {
        char name[56];         /* "struct" for a whole struct, or "struct.member" for a member */
        uint32_t offset, size; /* in bytes: offset of the member in its struct (whole struct: 0), and size */
    } row[0 IBNUE_STRUCTS(ONE) IBNUE_MEMBERS(ONE)];
};

__attribute__((used)) static const struct build build = {
    .magic = "IBNUE-BUILD-1\n\n",
    .opensm = OSM_VERSION,
    .package = IBNUE_PACKAGE,
    .protocol = IBNUE_PROTOCOL,
    .python = IBNUE_PYTHON,
    .rows = 0 IBNUE_STRUCTS(ONE) IBNUE_MEMBERS(ONE),
    .row = {IBNUE_STRUCTS(STRUCT_ROW) IBNUE_MEMBERS(MEMBER_ROW)},
};

/* Return the 64-bit FNV-1a hash of the names, offsets and sizes of all structs and members (`row`).  The log shows this
 * hash.  build_info.py computes the same hash from the library file. */
uint64_t ibnue_abi_hash(void)
{
    const unsigned char *byte = (const unsigned char *)build.row;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof(build.row); i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}
