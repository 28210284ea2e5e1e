#pragma once
#include <stdint.h>
typedef void (*ibn_job)(void *context, int32_t item);
typedef struct ibn_team ibn_team;
int32_t ibn_core_worthwhile(int32_t threads, int64_t visits);
ibn_team *ibn_core_team_new(int32_t threads);
void ibn_core_team_run(ibn_team *team, int32_t items, ibn_job job, void *context);
void ibn_core_team_free(ibn_team *team);
int ibn_core_parallel(int32_t threads, int32_t items, ibn_job job, void *context);
