/* One move of the local search in trees/passes.c: a switch gets another next hop towards one destination, if the used
 * dependencies of the destination's layer allow the move. */
#include "nue/internal/nue_job.h"

/* Give switch u another next hop towards destination `target`, if this lowers the sum of all channel costs and if all
 * new dependencies are allowed.  Returns whether the next hop was changed. */
int ibn_nue_move_next_hop(const nue_t *nue, grower_t *grower, int32_t target, int32_t u)
{
    const job_t *job = &nue->job;
    const ibn_network *net = job->net;
    load_account *account = &grower->account;
    uint8_t *next = job->next + (int64_t)target * net->switches, kept = next[u];
    int32_t root = job->targets->root[target];
    layer_t *layer = &nue->layer[nue->target_layer[target]];
    int32_t taken = ibn_trees_lmc_siblings(job, target, u, net->first[u] + kept);
    double flow = ibn_trees_flow_through(job, account->children, next, target, u), before = account->potential;
    if (flow == 0.0)
        return 0;
    ibn_nue_add_flow(nue, account, next, u, root, -flow);
    double relief = before - account->potential;
    for (int32_t c = net->first[u]; c < net->first[u + 1]; c++) {
        int32_t v = net->dst[c];
        if (c - net->first[u] == kept || ibn_trees_lmc_siblings(job, target, u, c) > taken
            || (v != root && next[v] == NO_CHANNEL))
            continue;
        double cost = 0.0;
        int32_t at = u;
        for (int32_t via = c; at != root; via = ibn_trees_next_channel(job, next, at)) {
            cost += ibn_trees_channel_weight(job, account, via, account->load[via] + flow) - account->weight[via];
            at = net->dst[via];
            if (at == u || cost >= relief - 1e-9)
                break;
            if (at == root)
                break;
        }
        if (at != root || cost >= relief - 1e-9)
            continue;
        grower->logged = 0;
        if (!ibn_nue_move_subtree(nue, layer, grower, next, root, u, c)) {
            ibn_nue_layer_forget(layer, grower);
            continue;
        }
        ibn_nue_add_flow(nue, account, next, u, root, flow);
        return 1;
    }
    ibn_nue_add_flow(nue, account, next, u, root, flow);
    return 0;
}
