// The C table between the training runtime and an MPI library: all that crosses the border of a plug-in. No
// MPI type is in it (MPI_Comm is a pointer in one MPI and a number in the other), and no C++ type. One
// plug-in a flavour is built from mpi_plugin.cpp; only one may ever be loaded into a process.
#pragma once

#include <stddef.h>

#define DLRUN_MPI_TABLE_VERSION 3u
#define DLRUN_MPI_TABLE_SYMBOL "dlrun_mpi_table"

// Functions that return int answer 0 or an MPI error code for error_text().
struct DlrunMpiTable {
  unsigned version;     // DLRUN_MPI_TABLE_VERSION of the plug-in's build
  const char* flavour;  // "Open MPI", "MPICH"

  int (*start)();  // MPI_Init_thread; calls come from one thread
  int (*rank)();
  int (*size)();
  int (*ranks_on_this_node)(int* count);  // how many ranks share memory with this one, itself included
  void (*library_version)(char* text, size_t capacity);

  // A message of at most 1 GiB that is under way until message_done answers 1 for its ticket, which is then
  // free for another; `bytes` is how many a receive has got.
  int (*send_start)(const void* data, size_t bytes, int to, size_t* ticket);
  int (*receive_start)(void* data, size_t bytes, int from, size_t* ticket);
  int (*message_done)(size_t ticket, int* done, size_t* bytes);

  int (*sum_floats)(float* data, size_t count);  // in place, blocking
  int (*sum_doubles)(double* data, size_t count);
  int (*broadcast)(void* data, size_t bytes, int root);
  int (*allgather)(const void* mine, size_t bytes, void* all);
  // Zeroed memory that all ranks see, at `*base`; only where all ranks are on one node. Freed by finish().
  int (*share_memory)(size_t bytes, void** base);

  int (*finish)();  // barrier, then MPI_Finalize
  // Barriers only: for a library whose MPI_Finalize cannot be trusted.
  int (*leave)();
  void (*abort)(int code);
  void (*error_text)(int error, char* text, size_t capacity);
};
