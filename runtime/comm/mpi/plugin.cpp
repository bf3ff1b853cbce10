// The one file that includes an MPI: it fills the table of mpi_table.h. Built once with each MPI's headers
// into libdlrun-mpi-openmpi.so and libdlrun-mpi-mpich.so. It decides nothing:
// mpi_communicator.cpp selects the algorithm and the size of pieces. Its state is file-local, since a process
// has one MPI world.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include <malloc.h>
#include <mpi.h>

#include "runtime/comm/mpi/table.h"

namespace {

constexpr std::size_t max_piece = std::size_t{1} << 30;  // MPI counts are int
// Numbers a blocking sum: both MPIs need scratch of this size, and above some MB it costs more than the sum.
// 4 MB of floats was the fastest with both (13 MB: 2.0 and 2.3 ms; in one piece 6.6 and 1.9 ms).
constexpr std::size_t sum_piece = std::size_t{1} << 20;

std::vector<MPI_Request> messages;  // by ticket
std::vector<std::size_t> free_tickets;
MPI_Win shared_window = MPI_WIN_NULL;
MPI_Comm node_communicator = MPI_COMM_NULL;

// Both MPIs take scratch from malloc in each collective. Memory that is handed back to the system comes as
// new pages next time, which costs more than the sum itself, so large blocks stay in the heap.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

int start() {
  keep_freed_memory();
  int provided = 0;
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      error != MPI_SUCCESS)
    return error;
  return MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

int rank() {
  int value = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int size() {
  int value = -1;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

int ranks_on_this_node(int* count) {
  if (node_communicator == MPI_COMM_NULL) {
    const int error =
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node_communicator);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_Comm_size(node_communicator, count);
}

void library_version(char* text, std::size_t capacity) {
  char whole[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(whole, &length);
  std::snprintf(text, capacity, "%s", whole);
}

std::size_t new_ticket() {
  if (free_tickets.empty()) {
    messages.push_back(MPI_REQUEST_NULL);
    return messages.size() - 1;
  }
  const std::size_t ticket = free_tickets.back();
  free_tickets.pop_back();
  return ticket;
}

int send_start(const void* data, std::size_t bytes, int to, std::size_t* ticket) {
  if (bytes > max_piece) return MPI_ERR_COUNT;
  *ticket = new_ticket();
  return MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD, &messages[*ticket]);
}

int receive_start(void* data, std::size_t bytes, int from, std::size_t* ticket) {
  if (bytes > max_piece) return MPI_ERR_COUNT;
  *ticket = new_ticket();
  return MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD, &messages[*ticket]);
}

int message_done(std::size_t ticket, int* done, std::size_t* bytes) {
  MPI_Status status;
  if (const int error = MPI_Test(&messages[ticket], done, &status); error != MPI_SUCCESS || *done == 0)
    return error;
  free_tickets.push_back(ticket);
  int count = 0;  // of a send it means nothing
  if (MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS) count = 0;
  *bytes = static_cast<std::size_t>(std::max(count, 0));
  return MPI_SUCCESS;
}

template <class T>
int sum(T* data, std::size_t count, MPI_Datatype type) {
  for (std::size_t done = 0; done < count; done += sum_piece) {
    const int piece = static_cast<int>(std::min(sum_piece, count - done));
    const int error = MPI_Allreduce(MPI_IN_PLACE, data + done, piece, type, MPI_SUM, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int sum_floats(float* data, std::size_t count) {
  return sum(data, count, MPI_FLOAT);
}

int sum_doubles(double* data, std::size_t count) {
  return sum(data, count, MPI_DOUBLE);
}

int broadcast(void* data, std::size_t bytes, int root) {
  for (std::size_t done = 0; done < bytes; done += max_piece) {
    const int piece = static_cast<int>(std::min(max_piece, bytes - done));
    const int error = MPI_Bcast(static_cast<char*>(data) + done, piece, MPI_BYTE, root, MPI_COMM_WORLD);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

int allgather(const void* mine, std::size_t bytes, void* all) {
  if (bytes > max_piece) return MPI_ERR_COUNT;
  const int count = static_cast<int>(bytes);
  return MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, MPI_COMM_WORLD);
}

// The whole block lies with rank 0, so that it is one piece for all.
int map_shared(std::size_t bytes, void** base) {
  const MPI_Aint own = rank() == 0 ? static_cast<MPI_Aint>(bytes) : 0;
  void* mine = nullptr;
  const int error = MPI_Win_allocate_shared(own, 1, MPI_INFO_NULL, node_communicator,
                                            static_cast<void*>(&mine), &shared_window);
  if (error != MPI_SUCCESS) return error;
  MPI_Aint whole = 0;
  int unit = 0;
  return MPI_Win_shared_query(shared_window, 0, &whole, &unit, static_cast<void*>(base));
}

// All ranks have it or none: a full /dev/shm may show on one rank only.
int share_memory(std::size_t bytes, void** base) {
  int node_ranks = 0;
  if (const int error = ranks_on_this_node(&node_ranks); error != MPI_SUCCESS) return error;
  if (node_ranks != size()) return MPI_ERR_RMA_SHARED;
  const int error = map_shared(bytes, base);
  if (error == MPI_SUCCESS && rank() == 0) std::memset(*base, 0, bytes);
  int mapped = error == MPI_SUCCESS ? 1 : 0;
  const int agreed = MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (agreed != MPI_SUCCESS) return agreed;
  return mapped == 1 ? MPI_SUCCESS : MPI_ERR_RMA_SHARED;
}

// Twice: the first may still have to connect some ranks; in the second, what a rank sends leaves it at once,
// so none is kept waiting by one that makes no further calls.
int leave() {
  if (const int error = MPI_Barrier(MPI_COMM_WORLD); error != MPI_SUCCESS) return error;
  return MPI_Barrier(MPI_COMM_WORLD);
}

int finish() {
  if (const int error = MPI_Barrier(MPI_COMM_WORLD); error != MPI_SUCCESS) return error;
  if (shared_window != MPI_WIN_NULL) MPI_Win_free(&shared_window);
  if (node_communicator != MPI_COMM_NULL) MPI_Comm_free(&node_communicator);
  return MPI_Finalize();
}

void abort_job(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
}

void error_text(int error, char* text, std::size_t capacity) {
  char whole[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(error, whole, &length) != MPI_SUCCESS)
    std::snprintf(whole, sizeof whole, "MPI error %d", error);
  std::snprintf(text, capacity, "%s", whole);
}

constexpr DlrunMpiTable table = {
    .version = DLRUN_MPI_TABLE_VERSION,
#ifdef OPEN_MPI
    .flavour = "Open MPI",
#else
    .flavour = "MPICH",
#endif
    .start = start,
    .rank = rank,
    .size = size,
    .ranks_on_this_node = ranks_on_this_node,
    .library_version = library_version,
    .send_start = send_start,
    .receive_start = receive_start,
    .message_done = message_done,
    .sum_floats = sum_floats,
    .sum_doubles = sum_doubles,
    .broadcast = broadcast,
    .allgather = allgather,
    .share_memory = share_memory,
    .finish = finish,
    .leave = leave,
    .abort = abort_job,
    .error_text = error_text,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const DlrunMpiTable* dlrun_mpi_table() {
  return &table;
}
