/* Take an answer as the shim does inside OpenSM.  The page behind the answer is not mapped. */
#include "view.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int take(uint8_t *asked, uint64_t answer_at, uint64_t sequence, uint8_t *shared, uint64_t size, char *why)
{
    struct ibnue_plugin plugin = {.sequence = sequence};
    struct view view;
    int code;

    plugin.asked = (struct ibnue_asked){.bytes = asked, .answer_at = answer_at, .sequence = sequence};
    plugin.memory = (struct ibnue_memory){.bytes = shared, .size = size};
    code = ibnue_answer_take(&plugin, why);
    if (!code) { /* check the copy that was accepted; the shared memory may have changed since */
        code = ibnue_view_open(&view, plugin.taken.bytes) ||
               ibnue_delivery_check(&view, &plugin.taken.answer, plugin.taken.bytes);
        ibnue_view_close(&view);
    }
    ibnue_tables_drop(&plugin.taken);
    return code;
}

/* Return 0 if the answer is accepted, -1 if it is refused, and 1 if it is accepted although it is wrong.  Return -2
 * without memory. */
int take_answer(uint8_t *asked, uint64_t answer_at, uint64_t sequence, const uint8_t *memory, uint64_t size, char *why)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), room = (size + page - 1) / page * page;
    uint8_t *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code;

    if (map == MAP_FAILED || mprotect(map + room, page, PROT_NONE))
        return -2;
    memcpy(map + room - size, memory, size);
    code = take(asked, answer_at, sequence, map + room - size, size, why);
    munmap(map, room + page);
    return code;
}

struct change {
    volatile uint8_t *byte;
    uint8_t one, other;
    volatile int over;
};

static void *change(void *argument)
{
    struct change *job = argument;

    while (!job->over) {
        *job->byte = job->one;
        *job->byte = job->other;
    }
    return NULL;
}

/* Take an answer many times while another thread changes one of its bytes.  Count how often it is accepted (counts[0]),
 * refused (counts[1]) and accepted although it is wrong (counts[2]). */
int take_changing(uint8_t *asked, uint64_t answer_at, uint64_t sequence, uint8_t *memory, uint64_t size, uint64_t at,
                  uint8_t other, int times, int *counts)
{
    struct change job = {memory + at, memory[at], other, 0};
    pthread_t thread;
    char why[IBNUE_WHY];

    if (pthread_create(&thread, NULL, change, &job))
        return -1;
    for (int i = 0; i < times; i++) {
        int code = take(asked, answer_at, sequence, memory, size, why);
        counts[code == 0 ? 0 : code == -1 ? 1 : 2]++;
    }
    job.over = 1;
    pthread_join(thread, NULL);
    return 0;
}
