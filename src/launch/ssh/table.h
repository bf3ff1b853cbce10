/* The C table between the ssh launcher and libssh: the whole interface of the plug-in libdlrun-ssh.so.
 * Agents, and heads with other launchers, do not load libssh and its cryptography, which would take a third
 * of their start. */
#pragma once

#include <stddef.h>

#define DLRUN_SSH_TABLE_VERSION 2u
#define DLRUN_SSH_TABLE_SYMBOL "dlrun_ssh_table"

/* The request for one node. Its texts must live until run() returns. */
struct DlrunSshRequest {
  const char* host;
  const char* program; /* the path of dlrun on the host */
  const char* copy;    /* its archive for a host that does not have it, or NULL */
  size_t copy_size;
  const char* user;       /* empty: as ssh_config says */
  unsigned short port;    /* 0: as ssh_config says */
  int accept_new_keys;    /* of unknown hosts */
  double connect_timeout; /* seconds */
  long long deadline;     /* for the agent's first line: nanoseconds of the steady clock */
  double lost_after;      /* seconds of silence after which an agent is lost */
  int alarm_fd;           /* readable: everything ends */
};

/* Called on the thread that runs the request: failed, or connected and at the end ended; once each. */
struct DlrunSshHost {
  void* context;
  void (*note)(void* context, const char* text);
  void (*connected)(void* context, int stream); /* the descriptor is the host's now */
  void (*failed)(void* context, const char* what, const char* hint);
  void (*ended)(void* context, const char* last_words); /* before the stream's end is seen */
};

struct DlrunSshTable {
  unsigned version;
  /* From the first try to the end of the agent's stream. Any number of threads may be in it. */
  void (*run)(const struct DlrunSshRequest* request, const struct DlrunSshHost* host);
};
