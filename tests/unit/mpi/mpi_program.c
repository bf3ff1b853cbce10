/* A rank for the tests, built with each MPI's own compiler. What it does is its first word: hello, threads,
 * abort N, exit N (before the end), silent (leaves with 0 without MPI_Finalize), never (does not call MPI at
 * all). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hello(void) {
  int rank, size, sum, provided;
  MPI_Query_thread(&provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int node_size;
  MPI_Comm_size(node, &node_size);
  MPI_Comm_free(&node);
  int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d, sum %d, on this node %d\n", rank, size, sum, node_size);
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "hello";
  const int code = argc > 2 ? atoi(argv[2]) : 1;
  if (strcmp(what, "never") == 0) return 0;
  int provided;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(what, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, code);
  if (strcmp(what, "exit") == 0 && rank == 1) exit(code);
  if (strcmp(what, "silent") == 0 && rank == 1) _Exit(0);
  if (strcmp(what, "hello") == 0) hello();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
