/* Map the memory that is shared with a worker, and wait for the worker's answers. */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

#define SLICE_MS 200 /* milliseconds between two checks whether OpenSM is about to end */

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

/* Map the whole file with the descriptor `fd`.  First extend the file to `least` bytes if it is smaller.  The file
 * cannot shrink, because the host has sealed it. */
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

/* While the worker computes, allocate the memory pages that its answer will probably need.  This avoids page faults
 * later, which take time.  The allocation is only an optimisation, so failures are ignored.  The worker itself grows
 * the file if necessary. */
void ibnue_memory_prepare(struct ibnue_plugin *plugin)
{
    size_t table = (size_t)plugin->rows.switches * (plugin->osm->subn.max_ucast_lid_ho + 1u);
    size_t from = plugin->asked.answer_at, to = from + 2 * table + 32 * 4096;
    char why[IBNUE_WHY];

    if (to <= plugin->memory.size ||
        ibnue_memory_map(&plugin->memory, plugin->memory.fd, plugin->memory.generation, to, why))
        return;
    madvise(plugin->memory.bytes + from, to - from, MADV_POPULATE_WRITE);
}

/* Wait until the worker's answer is in the shared memory.  Return 0, or -1 with the reason in `note`.  A worker that
 * has missed the deadline but still computes is not stopped.  Nothing may be written to the shared memory until its
 * late answer has arrived. */
int ibnue_wait_for_worker(struct ibnue_plugin *plugin, char *note)
{
    int code = IBNUE_PENDING;
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    plugin->asked.late = plugin->asked.replaced = 0;
    while (code == IBNUE_PENDING && !osm_exit_flag)
        code = ibnue_host_wait(plugin->asked.sequence, SLICE_MS, note, IBNUE_WHY);
    if (code == IBNUE_PENDING)
        snprintf(note, IBNUE_WHY, "OpenSM is about to end");
    plugin->asked.waited = (int)ibnue_ms_since(&start);
    plugin->asked.late = code == IBNUE_LATE;
    plugin->asked.replaced = code == IBNUE_REPLACED;
    return code == IBNUE_TOKEN ? 0 : -1;
}
