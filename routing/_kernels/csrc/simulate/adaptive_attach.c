/* Adaptive switches as a mechanism: set up their state, free it, and read their results. */
#include "simulate/internal/adaptive.h"

#include <stdlib.h>
#include <string.h>

/* Allocate an array of `count` elements of `width` bytes, all zero.  If memory runs out, set sim->failed. */
static void *zeros(ibn_sim *sim, int64_t count, size_t width)
{
    void *array = calloc((size_t)count + 1, width);
    sim->failed |= !array;
    return array;
}

/* Copy the `count` settings at *numbers to a new array of 32-bit numbers.  Afterwards, *numbers points to the next
 * setting. */
static int32_t *array_of(ibn_sim *sim, const int64_t **numbers, int64_t count)
{
    int32_t *array = zeros(sim, count, sizeof *array);
    for (int64_t i = 0; array && i < count; i++)
        array[i] = (int32_t)(*numbers)[i];
    *numbers += count;
    return array;
}

/* Copy the settings that Python passes to the fields of struct ibn_adaptive.  The settings are in the order of these
 * fields. */
static void copy_settings(ibn_sim *sim, ibn_adaptive *model, const int64_t *numbers)
{
    int64_t rows, square = (int64_t)sim->switches * sim->switches, each = (int64_t)sim->switches * sim->lids;
    int64_t *scalars[] = {
        &model->scheme, &model->adaptive_vls, &model->ca_vls, &model->stay, &model->detect, &model->repeat,
        &model->lasts,  &model->hold,         &model->sample, &model->step, &model->columns,
    };
    for (unsigned i = 0; i < sizeof scalars / sizeof *scalars; i++)
        *scalars[i] = *numbers++;
    rows = sim->switches * model->columns;
    model->enter_sl = zeros(sim, each, 1);
    for (int64_t i = 0; model->enter_sl && i < each; i++)
        model->enter_sl[i] = (uint8_t)numbers[i];
    numbers += each;
    model->enter_port = array_of(sim, &numbers, sim->switches);
    model->lid_column = array_of(sim, &numbers, sim->lids);
    model->lid_channel = array_of(sim, &numbers, sim->lids);
    model->choice_first = array_of(sim, &numbers, rows + 1);
    model->choice = array_of(sim, &numbers, sim->failed ? 0 : model->choice_first[rows]);
    if (model->scheme == SCHEME_CONCURRENT) {
        model->recovery_next = array_of(sim, &numbers, 2 * square);
        model->recovery_rank = array_of(sim, &numbers, sim->switches);
    }
}

/* Sort the flows by the CA that sends them: set `by_device`, and the fields `flows_first` and `flows` of each
 * device. */
static void sort_flows(const ibn_sim *sim, ibn_adaptive *model)
{
    for (int32_t f = 0; f < sim->flows; f++)
        model->device[sim->channel[sim->flow[f].channel].src].flows++;
    for (int32_t d = 1; d < sim->devices; d++)
        model->device[d].flows_first = model->device[d - 1].flows_first + model->device[d - 1].flows;
    for (int32_t d = 0; d < sim->devices; d++)
        model->device[d].flows = 0;
    for (int32_t f = 0; f < sim->flows; f++) {
        ibn_device *device = &model->device[sim->channel[sim->flow[f].channel].src];
        model->by_device[device->flows_first + device->flows++] = f;
    }
}

static void set_state(ibn_sim *sim, ibn_adaptive *model)
{
    for (int64_t l = 0; l < sim->vcs; l++)
        model->input[l] = (ibn_input){.check = IBN_NEVER, .suspect = -1};
    for (int32_t c = 0; c < sim->channels; c++)
        model->mark[c].until = -1;
    for (int32_t d = 0; d < sim->devices; d++) {
        model->device[d].relay.head = IBN_NONE;
        for (int k = 0; k < IBN_SPARES; k++)
            model->device[d].spare[k] = IBN_NONE;
    }
    model->ping_free = model->holder = IBN_NONE;
    sort_flows(sim, model);
}

/* Hook: set up the state.  Return 0, or 1 if memory runs out.  Also return 1 if an option or another mechanism needs
 * output queues, which adaptive switches do not have.  Python code rules out this case beforehand. */
static int attach(ibn_sim *sim, ibn_attached *self, const int64_t *numbers, int64_t count)
{
    (void)count;
    ibn_adaptive *model = self->state;
    if (sim->hooks & (IBN_HOOK_QUEUED | IBN_HOOK_ROOM | IBN_HOOK_VL | IBN_HOOK_OUTPUT | IBN_HOOK_ARRIVED)
        || sim->options.sample_period || sim->options.single_fifo || sim->options.xoff || sim->options.arbiters)
        return 1;
    copy_settings(sim, model, numbers);
    model->input = zeros(sim, sim->vcs, sizeof *model->input);
    model->mark = zeros(sim, sim->channels, sizeof *model->mark);
    model->saved = zeros(sim, sim->channels, sizeof *model->saved);
    model->device = zeros(sim, sim->devices, sizeof *model->device);
    model->by_device = zeros(sim, sim->flows, sizeof *model->by_device);
    model->turns = zeros(sim, sim->devices, sizeof *model->turns);
    model->touched = zeros(sim, sim->devices, sizeof *model->touched);
    model->order = zeros(sim, 256LL * sim->vls, sizeof *model->order);
    model->rank = zeros(sim, 256LL * sim->vls, sizeof *model->rank);
    if (sim->failed)
        return 1;
    set_state(sim, model);
    sim->adaptive = model;
    sim->plain = 0;
    if (model->scheme == SCHEME_TOKEN)
        ibn_simulate_at(sim, 0, EV_SIGNAL, 0, 0);
    if (model->scheme == SCHEME_BUBBLE || model->scheme >= SCHEME_RELAY)
        ibn_simulate_at(sim, 0, EV_PERIODIC, PERIODIC_SAMPLE, 0);
    return 0;
}

static void detach(ibn_sim *sim, ibn_attached *self)
{
    (void)sim;
    ibn_adaptive *model = self->state;
    void *parts[] = {
        model->enter_sl,  model->enter_port, model->lid_column, model->lid_channel, model->choice_first, model->choice,
        model->recovery_next, model->recovery_rank, model->input, model->mark, model->saved, model->device,
        model->by_device, model->turns, model->touched, model->order, model->rank, model->ping,
    };
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}

/* Hook: write the counters of the adaptive switches (such as the number of pings), and for each channel the number of
 * packets that were sent without credits.  Return how many numbers these are. */
static int64_t read(const ibn_sim *sim, const ibn_attached *self, int64_t most, int64_t *numbers)
{
    const ibn_adaptive *model = self->state;
    int64_t sheltered = 0;
    for (int32_t s = 0; s < sim->switches; s++)
        for (int k = 0; k < IBN_SPARES; k++)
            sheltered += model->device[s].spare[k] != IBN_NONE;
    const int64_t totals[] = {
        model->escapes, model->seized,  model->pings,    model->loops,     model->bubbles,
        sheltered,      model->relayed, model->diverted, model->deflected,
    };
    int64_t count = sizeof totals / sizeof *totals + sim->channels;
    if (most >= count) {
        memcpy(numbers, totals, sizeof totals);
        memcpy(numbers + sizeof totals / sizeof *totals, model->saved, (size_t)sim->channels * sizeof *model->saved);
    }
    return count;
}

IBN_MECHANISM(adaptive) = {
    .name = "adaptive", .bytes = sizeof(ibn_adaptive), .attach = attach, .detach = detach, .read = read,
};
