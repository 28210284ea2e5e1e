/* Functions that the Python part inside OpenSM (host.py) provides to the C part of the plugin (the shim).
 *
 * Every function returns 0x1b0e on success.  The list below has further return values of some functions.  Unless the
 * list states otherwise, all other values mean failure.  Then `note` has the reason: a text of at most `room` bytes,
 * including the final 0.
 * - ibnue_host_wait: 0x1b0f if there is no answer after `milliseconds`, but the deadline has not passed.  0x1b10 if
 *   the deadline has passed, but the worker still computes.
 * - ibnue_host_send, ibnue_host_wait: 0x1b11 if the worker has ended or stalled, and another worker is started.
 * - ibnue_host_awaited: 0x1b0e if OpenSM should sweep now, as described at Host.awaited in host.py.  0x1b0f if OpenSM
 *   may have to sweep later.  Any other value: no sweep is expected, or the call has failed.
 * - ibnue_host_policies: 0x1b0f if the configuration names no rules for ports.
 * - ibnue_host_check_worker: `note` has the next line for the log, which begins with "ERR" if it is an error.
 * - ibnue_host_shadow: 0x1b0f if no worker has to compare the tables in force with the tables of a shadow engine, or to
 *   search them for credit loops.
 *
 * This file may contain only plain declarations, because cffi parses it as well. */
#pragma once

int ibnue_host_start(const char *options, const char *opensm_log, const char *configured, char *names,
                     size_t names_room, char *note, size_t room);
int ibnue_host_memory(int *fd, uint64_t *generation, char *note, size_t room);
int ibnue_host_send(const char *engine, uint64_t sequence, char *note, size_t room);
int ibnue_host_wait(uint64_t sequence, int milliseconds, char *note, size_t room);
int ibnue_host_awaited(char *note, size_t room);
int ibnue_host_discard(char *note, size_t room);
int ibnue_host_check_worker(char *note, size_t room);
int ibnue_host_policies(char *note, size_t room);
int ibnue_host_written(uint64_t plan, unsigned rounds, char *note, size_t room);
int ibnue_host_status(const char *facts, char *note, size_t room);
int ibnue_host_shadow(const char *in_force, int *fd, uint64_t *generation, char *note, size_t room);
int ibnue_host_shadow_send(const char *in_force, int own_sls, uint64_t sequence, char *note, size_t room);
int ibnue_host_stop(void);
