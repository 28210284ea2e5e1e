/* Passes over the trees of all destinations, for the balancing kernel and for Nue.
 *
 * A pass visits all destinations, in blocks of LMC groups, and computes their trees.  Later passes may recompute only
 * some of the trees.  The LMC groups of a block are divided between two load accounts, which are merged after every
 * block.  There are two accounts at any number of threads.  The number of threads only decides whether both accounts
 * are handled at the same time.  So the result does not depend on the number of threads.
 *
 * The kernel provides the functions that compute a tree, and that update its own counts when a tree is removed or
 * restored. */
#pragma once

#include "core/parallel.h"
#include "trees/internal/load_account.h"

#define ACCOUNTS 2

/* Functions that a kernel (balance.c or Nue) provides for the passes.  The argument `which` is the number of a load
 * account, and `target` is the number of a destination. */
typedef struct {
    /* Compute the tree of a destination, and add the tree's flow to a load account. */
    void (*grow)(void *kernel, int32_t which, int32_t target);
    /* Update the kernel's own counts, after a tree has been removed (`removed`), or an old tree has been restored
     * (`restored`).  Nue, for example, counts the trees that use each dependency.  NULL: the kernel has no such
     * counts. */
    void (*removed)(void *kernel, int32_t which, int32_t target);
    void (*restored)(void *kernel, int32_t which, int32_t target);
    /* Give switch u another next hop towards a destination, if this lowers the sum of all channel costs.  The local
     * search works only in account 0.  Returns whether the next hop was changed. */
    int (*move)(void *kernel, int32_t target, int32_t u);
    /* The local search calls this function each time before it visits the channels with the peak utilisation; NULL:
     * the kernel needs no preparation. */
    void (*begin_round)(void *kernel);
} pass_steps;

typedef struct {
    job_t *job;
    void *kernel;            /* first argument of all functions in `steps` */
    const pass_steps *steps; /* the functions that the kernel (balance.c or Nue) provides */
    ibn_team *team;          /* team of at most two threads, one for each account */
    load_account *account[ACCOUNTS];
    /* queue: [F] LMC groups of each account, in the order of the present pass; count: number of these LMC groups */
    int32_t *queue[ACCOUNTS], count[ACCOUNTS];
    /* [D] number of switches that use the escape tree towards each destination.  Of two trees, the tree with fewer such
     * switches is better at any load.  NULL: the kernel has no escape trees */
    int32_t *escaped;
    /* schedule: [scheduled] number of times that the utilisation is squared to get the cost of a channel, for each
     * pass.  The last element is used for all later passes */
    const int32_t *schedule;
    int32_t scheduled;
    /* number of passes, including the first pass, that recompute every tree; later passes recompute only trees that use
     * a channel close to the peak utilisation */
    int32_t full_passes;
    int searches; /* whether the local search is made after each pass except the first pass */
} passes_t;

/* ibn_trees_account_prepare allocates those arrays of a load account that both kernels (balance.c and Nue) use.  It
 * returns 0, or 1 if memory is exhausted.  ibn_trees_account_release frees all arrays of a load account. */
int ibn_trees_account_prepare(const ibn_network *net, load_account *account);
void ibn_trees_account_release(load_account *account);
void ibn_trees_account_move_tree(const job_t *job, load_account *account, const uint8_t *next, int32_t target,
                                 double sign);

/* Allocate the queues.  Fill the order of the LMC groups, and the LMC group of each destination.  Returns 1 if memory
 * is exhausted, otherwise 0. */
int ibn_trees_passes_prepare(passes_t *passes);
void ibn_trees_passes_release(passes_t *passes);
void ibn_trees_passes_shuffle(passes_t *passes);
void ibn_trees_passes_run(passes_t *passes, double *load);
void ibn_trees_passes_merge(passes_t *passes, double *load);
double ibn_trees_flow_through(const job_t *job, int32_t *scratch, const uint8_t *next, int32_t target, int32_t u);
