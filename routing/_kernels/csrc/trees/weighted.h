#pragma once
#include "trees/balance.h"
int ibn_trees_weighted(const ibn_network *network, const ibn_targets *targets, double first_weight, uint8_t *next,
                       double *load);
