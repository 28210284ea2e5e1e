/* Shortest paths up and then down to one switch (the root) in an order of the switches, with one next hop per switch.
 *
 * * A switch that receives traffic on a channel down must forward it down.  Switches choose in turn, from the first
 * of the order on.  A switch takes a path down if that is not longer than a path up.  Then all switches on its
 * shortest paths down must forward down, too. */
#include "trees/internal/tree_survey.h"

#include <stdlib.h>
#include <string.h>

#include "trees/descent.h"

/* Fill `below`: hops of the shortest path to the root that only goes down. */
static void find_paths_down(const tree_survey *survey, int32_t root)
{
    const ibn_network *net = survey->net;
    int32_t head = 0, tail = 0;
    for (int32_t u = 0; u < net->switches; u++)
        survey->below[u] = -1;
    survey->below[root] = 0;
    survey->queue[tail++] = root;
    while (head < tail) {
        int32_t v = survey->queue[head++];
        for (int32_t k = net->into_first[v]; k < net->into_first[v + 1]; k++) {
            int32_t u = net->src[net->into[k]];
            if (survey->below[u] < 0 && survey->position[u] < survey->position[v]) {
                survey->below[u] = survey->below[v] + 1;
                survey->queue[tail++] = u;
            }
        }
    }
}

/* Return the hops of the shortest path of `u` that begins with a channel up; -1 if there is none. */
static int32_t hops_upwards(const tree_survey *survey, int32_t u)
{
    const ibn_network *net = survey->net;
    int32_t best = -1;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (survey->position[v] < survey->position[u] && survey->direction[v] != NO_PATH
            && (best < 0 || survey->hops[v] + 1 < best))
            best = survey->hops[v] + 1;
    }
    return best;
}

/* Set the direction to PATH_DOWN for all switches on the shortest paths down of `u`. */
static void bind_below(const tree_survey *survey, int32_t u)
{
    const ibn_network *net = survey->net;
    if (survey->below[u] == 0)
        return;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (survey->position[v] > survey->position[u] && survey->below[v] == survey->below[u] - 1)
            survey->direction[v] = PATH_DOWN;
    }
}

/* Fill the direction and the hops of every switch's path to the root. */
void ibn_tree_survey(const tree_survey *survey, int32_t root)
{
    find_paths_down(survey, root);
    memset(survey->direction, NO_PATH, (size_t)survey->net->switches);
    for (int32_t i = 0; i < survey->net->switches; i++) {
        int32_t u = survey->sequence[i], up = -1;
        if (survey->direction[u] != PATH_DOWN)
            up = hops_upwards(survey, u);
        if (survey->below[u] >= 0 && (up < 0 || survey->below[u] <= up)) {
            survey->direction[u] = PATH_DOWN;
            survey->hops[u] = survey->below[u];
            bind_below(survey, u);
        } else {
            survey->direction[u] = up < 0 ? NO_PATH : PATH_UP;
            survey->hops[u] = up;
        }
    }
}

/* Compute hops of the paths up and then down from every switch to some switches.
 *
 * position: int32 [S], order of the switches.  root: int32 [roots].  hops: int32 [roots, S], output; -1: no path.
 * Returns 0, or 1 if memory is exhausted. */
int ibn_trees_updown_hops(const ibn_network *network, const int32_t *position, int32_t roots, const int32_t *root,
                          int32_t *hops)
{
    size_t switches = (size_t)network->switches + 1;
    int32_t *sequence = malloc(switches * sizeof *sequence), *below = malloc(switches * sizeof *below);
    int32_t *queue = malloc(switches * sizeof *queue);
    uint8_t *direction = malloc(switches);
    int failed = !sequence || !below || !queue || !direction;
    if (!failed) {
        for (int32_t u = 0; u < network->switches; u++)
            sequence[position[u]] = u;
        for (int32_t i = 0; i < roots; i++) {
            tree_survey survey = {network, position,  sequence, hops + (int64_t)i * network->switches,
                                  below,   direction, queue};
            ibn_tree_survey(&survey, root[i]);
        }
    }
    free(sequence);
    free(below);
    free(queue);
    free(direction);
    return failed;
}
