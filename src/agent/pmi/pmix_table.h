/* The C table between the agent and libpmix: all that crosses the border of the plug-in libdlrun-pmix.so, so
 * that the agent needs no libpmix where no job asks for it. libpmix calls back on a thread of its own; the
 * plug-in queues that, and dispatch() tells it to the host on the caller's thread. One job at a time. */
#pragma once

#include <stddef.h>

#define DLRUN_PMIX_TABLE_VERSION 1u
#define DLRUN_PMIX_TABLE_SYMBOL "dlrun_pmix_table"

/* Called from within start() .. stop() by dispatch() only. */
struct DlrunPmixHost {
  void* context;
  void (*connected)(void* context, int rank);
  void (*finalized)(void* context, int rank);
  void (*aborted)(void* context, int rank, int code, const char* text);
  /* All nodes' blobs under this key, in node order, are to come back by exchanged(). */
  void (*exchange)(void* context, const char* key, const char* blob, size_t length);
  void (*log)(void* context, const char* text);
};

/* Read during start() only. */
struct DlrunPmixJob {
  const char* name_space; /* unique a job and attempt */
  const char* scratch;    /* a private folder: sockets and session files */
  const char* const* node_names;
  int node_count;
  int node_index; /* of this node */
  const int* node_of_rank;
  int world_size;
};

/* Functions that return text answer NULL, or what went wrong (valid until the next call). */
struct DlrunPmixTable {
  unsigned version;
  const char* (*library_version)();
  const char* (*start)(const struct DlrunPmixJob* job, const struct DlrunPmixHost* host);
  int (*event_fd)(); /* readable: call dispatch() */
  void (*dispatch)();
  /* "NAME=value" entries for the environment of this rank, ended by NULL; valid until the next call. */
  const char* (*environment)(int rank, const char* const** entries);
  void (*exchanged)(const char* key, const char* const* blobs, const size_t* lengths, int count);
  void (*stop)();
};
