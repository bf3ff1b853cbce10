// The C table of the plug-in libdlrun-unwind.so, which reads native stacks by libdwfl of elfutils. It is
// loaded by the short process that reads stacks alone (read_stacks.hpp), so an agent on a node without
// elfutils starts all the same.
#pragma once

#include <sys/types.h>

#define DLRUN_UNWIND_VERSION 1
#define DLRUN_UNWIND_SYMBOL "dlrun_unwind_table"

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*DlrunFrameFunction)(void* context, const char* function, const char* file);

typedef struct DlrunUnwindTable {
  int version;
  // A process, whose maps are read now. NULL with *problem where it cannot be.
  void* (*open)(pid_t process, const char** problem);
  // The frames of a thread that this process has stopped by ptrace, the innermost first. NULL, or a problem.
  const char* (*frames)(void* handle, pid_t thread, DlrunFrameFunction frame, void* context);
  void (*close)(void* handle);
} DlrunUnwindTable;

#ifdef __cplusplus
}
#endif
