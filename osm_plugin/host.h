/* What the Python part inside of OpenSM (host.py) offers to the shim.  Every function returns 0x1b0e when all went
 * well and anything else when not, then with the reason in `note`: text of at most `room` bytes with its final 0.
 * ibnue_host_wait returns 0x1b0f when `milliseconds` are over and the deadline is not, ibnue_host_policies when the
 * configuration names no rules for ports.
 * Plain declarations only: this file is the cffi declaration too. */
#ifndef IBNUE_HOST_H
#define IBNUE_HOST_H

int ibnue_host_start(const char *options, const char *opensm_log, char *names, size_t names_room, char *note,
                     size_t room);
int ibnue_host_memory(int *fd, uint64_t *generation, char *note, size_t room);
int ibnue_host_send(const char *engine, uint64_t sequence, char *note, size_t room);
int ibnue_host_wait(uint64_t sequence, int milliseconds, char *note, size_t room);
int ibnue_host_discard(char *note, size_t room);
int ibnue_host_tend(char *note, size_t room);
int ibnue_host_policies(char *note, size_t room);
int ibnue_host_written(uint64_t plan, unsigned rounds, char *note, size_t room);
int ibnue_host_stop(void);

#endif
