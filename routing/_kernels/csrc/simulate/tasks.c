/* Tasks: messages that begin when other messages have arrived, as in a collective operation or in the trace of a
 * program.
 *
 * Each task is one message of a flow.  A task is ready when three conditions hold.  First, all tasks for which the task
 * waits have arrived completely.  Second, for each of them, a given delay since its arrival has passed.  Third, the
 * task's earliest tick has come.  A flow sends its tasks in the order in which they become ready.  Without
 * retransmission, a task with a lost packet never arrives, and neither do the tasks that wait for it.
 *
 * The flows have the arrival process PROCESS_TRACE, so each flow sends the messages in its rows of sim->trace.  At the
 * start, these rows are unused.  When a task becomes ready, this mechanism writes the task's message to the next row of
 * the task's flow. */
#include "simulate/internal/flow.h"
#include "simulate/internal/mechanism.h"

#include <stdlib.h>
#include <string.h>

#define TASK_NUMBERS 5

typedef struct {
    int32_t flow,     /* flow that sends the message of the task */
        lid,          /* destination LID of the task's message */
        bytes,        /* size of the task's message in bytes */
        left,         /* number of bytes of the message that have not arrived yet */
        waits;        /* number of awaited messages that have not arrived yet */
    int64_t at,       /* setting: the task is not ready before this tick */
        delay,        /* for a task that waits for no message: ticks from `at` until the task is ready */
        due,          /* first tick at which the task can be ready, by `at` and the messages that have arrived so far */
        ready,        /* tick at which the task became ready, or -1 */
        done;         /* tick at which the message had arrived completely, or -1 */
    int32_t successor; /* index in state->after of the first task that waits for this task */
} task;

/* A task that waits for another task. */
typedef struct {
    int32_t task;  /* the task that waits */
    int64_t delay; /* ticks from the arrival of the awaited message until the task can be ready */
} successor;

typedef struct {
    task *tasks;       /* [count + 1] tasks; the last element is not a task: its field `successor` is the length of
                        * `after` */
    successor *after;  /* the tasks that wait for task 0, then the tasks that wait for task 1, and so on */
    int32_t *row_task; /* [rows of sim->trace] number of the task whose message is in each row */
    int32_t count;     /* number of tasks */
} tasks;

/* Fill state->after from the rows (awaited task, waiting task, delay) of the settings, sorted by the awaited task.
 * Return 1 if memory runs out, else 0. */
static int set_successors(tasks *state, const int64_t *pairs, int64_t count)
{
    state->after = malloc(((size_t)count + 1) * sizeof *state->after);
    int32_t *next = calloc((size_t)state->count + 1, sizeof *next);
    if (!state->after || !next) {
        free(next);
        return 1;
    }
    for (int64_t i = 0; i < count; i++)
        next[pairs[3 * i]]++;
    int32_t at = 0;
    for (int32_t t = 0; t <= state->count; t++) {
        int32_t here = next[t];
        state->tasks[t].successor = next[t] = at;
        at += here;
    }
    for (int64_t i = 0; i < count; i++) {
        state->after[next[pairs[3 * i]]++] = (successor){(int32_t)pairs[3 * i + 1], pairs[3 * i + 2]};
        state->tasks[pairs[3 * i + 1]].waits++;
    }
    free(next);
    return 0;
}

/* Read the settings: the number of tasks, a row for each task (flow, LID, bytes, earliest tick, delay), and a row for
 * each dependency (awaited task, waiting task, delay). */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    tasks *state = self->state;
    const int64_t *row = numbers + 1, *pairs = row + TASK_NUMBERS * numbers[0];
    int64_t rows = 0;
    state->count = (int32_t)numbers[0];
    for (int32_t f = 0; f < sim->flows; f++) {
        rows += sim->flow[f].messages;
        sim->flow[f].messages = 0;
    }
    state->tasks = calloc((size_t)state->count + 1, sizeof *state->tasks);
    state->row_task = calloc((size_t)rows + 1, sizeof *state->row_task);
    if (!state->tasks || !state->row_task)
        return 1;
    for (int32_t t = 0; t < state->count; t++, row += TASK_NUMBERS)
        state->tasks[t] = (task){
            .flow = (int32_t)row[0], .lid = (int32_t)row[1], .bytes = (int32_t)row[2], .left = (int32_t)row[2],
            .at = row[3], .delay = row[4], .due = row[3], .ready = -1, .done = -1,
        };
    if (set_successors(state, pairs, (count - 1 - TASK_NUMBERS * numbers[0]) / 3))
        return 1;
    for (int32_t t = 0; t < state->count; t++)
        if (!state->tasks[t].waits)
            ibn_simulate_timer(sim, self, state->tasks[t].at + state->tasks[t].delay, t, 0);
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    tasks *state = self->state;
    free(state->tasks);
    free(state->after);
    free(state->row_task);
}

/* Add a task that is ready now to the messages of its flow. */
static void timer(ibn_sim *sim, ibn_attached *self, int32_t t, int32_t value)
{
    (void)value;
    tasks *state = self->state;
    task *one = &state->tasks[t];
    ibn_flow *flow = &sim->flow[one->flow];
    int64_t row = flow->list + flow->messages++;
    one->ready = sim->now;
    state->row_task[row] = t;
    sim->trace[3 * row] = sim->now;
    sim->trace[3 * row + 1] = one->lid;
    sim->trace[3 * row + 2] = one->bytes;
    if (flow->made == flow->messages - 1)
        flow->due = sim->now;
    ibn_simulate_prepare(sim, one->flow);
}

/* Record the task to which a new packet belongs.  This is the task whose message the flow is sending. */
static void made(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    const ibn_flow *flow = &sim->flow[sim->packet[p].flow];
    self->tag[p] = ((tasks *)self->state)->row_task[flow->list + flow->made - 1];
}

/* Count a delivered packet of a task.  If the task has arrived completely, tasks that wait for it may become ready. */
static void delivered(ibn_sim *sim, ibn_attached *self, int32_t p)
{
    tasks *state = self->state;
    task *one = &state->tasks[self->tag[p]];
    one->left -= sim->packet[p].bytes;
    if (one->left)
        return;
    one->done = sim->now;
    for (int32_t i = one->successor; i < one[1].successor; i++) {
        task *next = &state->tasks[state->after[i].task];
        int64_t when = sim->now + (state->after[i].delay ? state->after[i].delay : 1);
        next->due = when > next->due ? when : next->due;
        if (--next->waits)
            continue;
        ibn_simulate_timer(sim, self, next->due > sim->now ? next->due : sim->now + 1, state->after[i].task, 0);
    }
}

/* Write the tick at which each task became ready, followed by the tick at which each task arrived; -1: not yet. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    (void)sim;
    const tasks *state = self->state;
    for (int64_t i = 0; i < most && i < 2LL * state->count; i++)
        numbers[i] = i < state->count ? state->tasks[i].ready : state->tasks[i - state->count].done;
    return 2LL * state->count;
}

IBN_MECHANISM(tasks) = {
    .name = "tasks", .bytes = sizeof(tasks), .tags = 1, .attach = attach, .detach = detach,
    .made = made, .delivered = delivered, .timer = timer, .read = read,
};
