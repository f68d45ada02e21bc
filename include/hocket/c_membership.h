/* A part of hocket/c.h: going on with the ranks that are left, and with newcomers. */
#ifndef HOCKET_C_MEMBERSHIP_H_
#define HOCKET_C_MEMBERSHIP_H_

#include "hocket/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hocket_rebuild_options {
  size_t size;             /* sizeof(hocket_rebuild_options) */
  int64_t deadline_ns;     /* limit for living ranks that do not call it; 0: the communicator's */
  int32_t exclude_missing; /* 1: go on without such ranks at the limit; 0: fail */
  int32_t allow_minority;  /* 1: go on without a majority; the other side may go on, too */
} hocket_rebuild_options;
/* Makes the communicator of the ranks that are left; all of them must call it. */
int hocket_rebuild(hocket_comm* comm, const hocket_rebuild_options* options, hocket_comm** next);

typedef struct hocket_admit_options {
  size_t size;         /* sizeof(hocket_admit_options) */
  int64_t patience_ns; /* time to wait for newcomers; 0: 10 s; 1: take those that wait already */
  int32_t newcomers;   /* the most that are taken in; 0: one */
  int32_t close_up;    /* 1: members come first, in order; 0: they keep their ranks */
  int64_t deadline_ns; /* this field and the next two: as in hocket_rebuild_options */
  int32_t exclude_missing;
  int32_t allow_minority;
} hocket_admit_options;
/* Takes newcomers into the job: processes that call hocket_init with `join`, or with HOCKET_JOIN
 * set. All ranks that are left must call it. `next` is the communicator of a new world of members
 * and newcomers. It may have fewer newcomers than asked for. `comm` becomes the communicator that
 * hocket_rebuild makes, even if the call fails. Free both. See admission.h. */
int hocket_admit(hocket_comm* comm, const hocket_admit_options* options, hocket_comm** next);
/* Writes the ranks that the last hocket_admit took in, at most `length` of them. `count` gets the
 * number of all. */
int hocket_comm_newcomers(const hocket_comm* comm, int32_t* ranks, size_t length, size_t* count);

#ifdef __cplusplus
}
#endif

#endif /* HOCKET_C_MEMBERSHIP_H_ */
