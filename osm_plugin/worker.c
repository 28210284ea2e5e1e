/* The worker as the rest of the shim sees it: the memory shared with it, and waiting for what it answers. */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

/* How often a wait looks whether OpenSM is to end. */
#define SLICE_MS 200

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void ibnue_memory_unmap(struct ibnue_memory *memory)
{
    if (memory->bytes)
        munmap(memory->bytes, memory->size);
    memory->bytes = NULL;
    memory->size = 0;
}

/* Map all of the file behind `fd`, which is made to hold `least` bytes.  It never shrinks: the host sealed it. */
int ibnue_memory_map(struct ibnue_memory *memory, int fd, uint64_t generation, size_t least, char *why)
{
    struct stat about;
    void *bytes;

    if (fstat(fd, &about) || ((size_t)about.st_size < least && (ftruncate(fd, (off_t)least) || fstat(fd, &about)))) {
        snprintf(why, IBNUE_WHY, "the shared memory cannot hold %zu bytes: %s", least, strerror(errno));
        return -1;
    }
    if (memory->bytes && memory->generation == generation && memory->size == (size_t)about.st_size)
        return 0;
    ibnue_memory_unmap(memory);
    bytes = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED) {
        snprintf(why, IBNUE_WHY, "the shared memory cannot be mapped: %s", strerror(errno));
        return -1;
    }
    *memory = (struct ibnue_memory){.fd = fd, .generation = generation, .bytes = bytes, .size = (size_t)about.st_size};
    return 0;
}

/* Have the pages there that the answer will most likely take, while the worker computes: their first touch is not free.
 * Only a help, so that failures do not matter; the worker grows the file by itself where it must. */
void ibnue_memory_prepare(struct ibnue_plugin *plugin)
{
    const struct ibnue_request *request = (const struct ibnue_request *)plugin->memory.bytes;
    size_t table = (size_t)request->switches * (plugin->osm->subn.max_ucast_lid_ho + 1u);
    size_t from = (request->end + 4095) / 4096 * 4096, to = from + 2 * table + 32 * 4096;
    char why[IBNUE_WHY];

    if (to <= plugin->memory.size ||
        ibnue_memory_map(&plugin->memory, plugin->memory.fd, plugin->memory.generation, to, why))
        return;
    madvise(plugin->memory.bytes + from, to - from, MADV_POPULATE_WRITE);
}

int ibnue_wait_for_worker(struct ibnue_plugin *plugin, char *note)
{
    int code = IBNUE_PENDING;

    while (code == IBNUE_PENDING && !osm_exit_flag)
        code = ibnue_host_wait(plugin->sequence, SLICE_MS, note, IBNUE_WHY);
    if (code == IBNUE_PENDING)
        snprintf(note, IBNUE_WHY, "OpenSM is about to end");
    return code == IBNUE_TOKEN ? 0 : -1;
}
