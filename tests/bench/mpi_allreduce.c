// The peer of dlrun-allreduce-bench: plain MPI_Allreduce of floats in place, as a program would call it, with
// the same sizes, the same number of repetitions and the same way of timing: the slowest rank counts, the
// median is printed.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTimes = 41 };

static int by_size(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

static void measure(size_t bytes, int rank, int size) {
  const int count = (int)(bytes / sizeof(float));
  float* data = malloc(bytes);
  double times[kTimes];
  for (int i = 0; i < kTimes; ++i) {
    for (int k = 0; k < count; ++k) data[k] = (float)(rank + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double own = MPI_Wtime() - begin;
    MPI_Allreduce(&own, &times[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int k = 0; k < count; ++k)
      if (data[k] != (float)(size * (size + 1)) / 2) MPI_Abort(MPI_COMM_WORLD, 70);
  }
  qsort(times, kTimes, sizeof times[0], by_size);
  if (rank == 0) printf("%10zu bytes %10.1f us\n", bytes, 1e6 * times[kTimes / 2]);
  free(data);
}

int main(int argc, char** argv) {
  int rank = 0, size = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t bytes = 4096; bytes <= (size_t)64 << 20; bytes *= 4) measure(bytes, rank, size);
  return MPI_Finalize();
}
