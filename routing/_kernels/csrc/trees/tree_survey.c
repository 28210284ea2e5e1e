/* Find for every switch a shortest path to one switch, the root.  In a switch order, this path first leads up and then
 * down.  Each switch has one next hop.  A switch that receives traffic on a channel down must forward the traffic down.
 *
 * Switches choose one after the other, in the switch order.  A switch chooses between a path down (all of its channels
 * lead down) and a path that begins upwards, and takes the shorter path.  If both are equally long, the switch looks
 * at the first channels of all its shortest paths.  It takes a path up if more of these channels lead up than down,
 * else a path down.  If a switch takes a path down, all switches on its shortest paths down must send down too. */
#include "trees/internal/tree_survey.h"

#include <stdlib.h>
#include <string.h>

#include "trees/descent.h"

/* Fill `below` with the hops of each switch's shortest path to the root that leads down only. */
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

/* Consider only the paths of switch u that begin with a channel up.  Return the hops of the shortest such path, or -1
 * if there is no such path. */
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

/* Consider the first channels of all shortest paths of switch u to the root, which have `hops` hops.  Return whether at
 * least half of these channels lead down. */
static int has_more_down(const tree_survey *survey, int32_t u, int32_t hops)
{
    const ibn_network *net = survey->net;
    int32_t more = 0;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (survey->position[v] > survey->position[u])
            more += survey->below[v] == hops - 1;
        else
            more -= survey->direction[v] != NO_PATH && survey->hops[v] == hops - 1;
    }
    return more >= 0;
}

/* Mark the next hops of switch u on its shortest paths down to the root: like u, they must send down to the root.  Each
 * of them marks its own next hops when it is visited later in the switch order. */
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

/* Find for every switch in which direction (up or down) its path to the root begins, and how many hops this path
 * has. */
void ibn_trees_survey(const tree_survey *survey, int32_t root)
{
    find_paths_down(survey, root);
    memset(survey->direction, NO_PATH, (size_t)survey->net->switches);
    for (int32_t i = 0; i < survey->net->switches; i++) {
        int32_t u = survey->sequence[i], up = -1;
        if (survey->direction[u] != PATH_DOWN)
            up = hops_upwards(survey, u);
        int32_t down = survey->below[u];
        if (down >= 0 && (up < 0 || down < up || (down == up && has_more_down(survey, u, up)))) {
            survey->direction[u] = PATH_DOWN;
            survey->hops[u] = down;
            bind_below(survey, u);
        } else {
            survey->direction[u] = up < 0 ? NO_PATH : PATH_UP;
            survey->hops[u] = up;
        }
    }
}

/* Compute the hops of shortest paths that lead up and then down in a switch order, from every switch to each of several
 * root switches.
 *
 * position: int32 [S], position of each switch in the switch order.
 * root: int32 [roots], the switches where the paths end.
 * hops: int32 [roots, S], output: hops of the paths; -1: no path.
 *
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
            ibn_trees_survey(&survey, root[i]);
        }
    }
    free(sequence);
    free(below);
    free(queue);
    free(direction);
    return failed;
}
