/* Passes over the trees of all destinations, as the balancing kernel and Nue make them.
 *
 * A pass computes or recomputes the tree of every destination, in blocks of LMC groups.  The LMC groups are divided
 * between two load accounts, which are merged after every block.  There are two accounts at any thread count: threads
 * only decide whether both are processed at the same time.  So the result does not depend on the number of threads.
 *
 * The kernel provides functions that compute a tree, and that update its other counts when a tree is removed or
 * restored. */
#ifndef IBNUE_PASSES_H
#define IBNUE_PASSES_H

#include "core/parallel.h"
#include "trees/internal/load_account.h"

#define ACCOUNTS 2

/* Functions that a kernel (balance.c or Nue) provides for the passes. `which` is the number of a load account, `target`
 * the number of a destination. */
typedef struct {
    /* Compute the tree of a destination, and add its flow to the account. */
    void (*grow)(void *kernel, int32_t which, int32_t target);
    /* Update the other counts of the kernel.  The function `removed` is called before a tree is recomputed, `restored`
     * after it was restored.  NULL: nothing has to be done. */
    void (*removed)(void *kernel, int32_t which, int32_t target);
    void (*restored)(void *kernel, int32_t which, int32_t target);
    /* Move the next hop of switch `u` towards a destination to another channel, if that lowers the sum of all channel
     * weights.  Returns whether it was moved.  Uses account 0. */
    int (*move)(void *kernel, int32_t target, int32_t u);
    /* Prepare one round of the local search; NULL: nothing to do */
    void (*begin_round)(void *kernel);
} pass_steps;

typedef struct {
    job_t *job;
    void *kernel;            /* argument that is passed first to the functions in `steps` */
    const pass_steps *steps; /* the functions that the kernel (balance.c or Nue) provides */
    ibn_team *team;          /* at most one thread for each account */
    load_account *account[ACCOUNTS];
    /* queue: [F] LMC groups of each account, in the order of this pass; count: their number */
    int32_t *queue[ACCOUNTS], count[ACCOUNTS];
    /* [D] number of switches on an escape tree: a tree with more of them is worse at any load.
     * NULL: the kernel has no escape trees */
    int32_t *escaped;
    /* schedule: [scheduled] number of times that the utilisation is squared in each pass; its last element is used for
     * all later passes */
    const int32_t *schedule;
    int32_t scheduled;
    /* number of passes, including the first, that recompute every tree; later passes recompute only trees that use a
     * channel close to the peak */
    int32_t full_passes;
    int searches; /* whether the local search follows each pass but the first */
} passes_t;

/* ibn_trees_account_prepare allocates the arrays of a load account that every kernel needs, and returns 1 if memory is
 * exhausted. ibn_account_dispose frees all arrays of the account. */
int ibn_trees_account_prepare(const ibn_network *net, load_account *account);
void ibn_trees_account_release(load_account *account);
void ibn_trees_account_move_tree(const job_t *job, load_account *account, const uint8_t *next, int32_t target,
                                 double sign);

/* Allocate the queues.  Fill the order of LMC groups, and the LMC group of each destination.  Returns 1 if memory is
 * exhausted. */
int ibn_trees_passes_prepare(passes_t *passes);
void ibn_trees_passes_release(passes_t *passes);
void ibn_trees_passes_shuffle(passes_t *passes);
void ibn_trees_passes_run(passes_t *passes, double *load);
void ibn_trees_passes_merge(passes_t *passes, double *load);
double ibn_trees_flow_through(const job_t *job, int32_t *scratch, const uint8_t *next, int32_t target, int32_t u);

#endif
