// libdlrun-pmix.so: a PMIx server for the ranks of one node. Everything libpmix calls arrives on its own
// thread: the callbacks copy their arguments into the queue and return. Not offered: spawn, connect, publish,
// groups, and fetching a single remote rank's data (Open MPI collects all in its fence).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <pmix.h>
#include <pmix_server.h>
#include <unistd.h>

#include "src/agent/pmi/pmix_job.hpp"
#include "src/agent/pmi/pmix_queue.hpp"
#include "src/agent/pmi/pmix_table.h"

#ifndef PMIX_LOCAL_COLLECTIVE_STATUS  // in no header before libpmix 4.1
#define PMIX_LOCAL_COLLECTIVE_STATUS "pmix.loc.col.st"
#endif

namespace dlrun::pmix {

namespace {

struct Waiting {
  pmix_modex_cbfunc_t done;
  void* data;
};

// libpmix has one server a process and its callbacks carry no context of ours, so the state is the file's.
struct Server {
  Server(const DlrunPmixJob& given, const DlrunPmixHost& to) : job(given), host(to) {}

  Job job;
  DlrunPmixHost host;
  CallQueue queue;
  // The following belong to the agent's thread.
  std::map<std::string, int> fences;  // by participants: how many so far
  std::map<std::string, Waiting> waiting;
  std::vector<std::string> environment;
  std::vector<const char*> environment_pointers;
};

std::unique_ptr<Server> server;
std::string last_error;

const char* failed(const char* call, pmix_status_t status) {
  last_error = std::string(call) + ": " + PMIx_Error_string(status);
  return last_error.c_str();
}

pmix_proc_t process(const std::string& name_space, pmix_rank_t rank) {
  pmix_proc_t proc;
  std::memset(&proc, 0, sizeof proc);
  std::strncpy(proc.nspace, name_space.c_str(), PMIX_MAX_NSLEN);
  proc.rank = rank;
  return proc;
}

// The ranks of a fence as text: the same on all nodes; "*" for all.
std::string participants(const pmix_proc_t procs[], std::size_t count) {
  std::set<pmix_rank_t> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.insert(procs[i].rank);
  if (ranks.contains(PMIX_RANK_WILDCARD)) return "*";
  std::string out;
  for (const pmix_rank_t rank : ranks) out += (out.empty() ? "" : ",") + std::to_string(rank);
  return out;
}

// An exchange is of all nodes: a fence of ranks that leaves a node out cannot be one.
bool on_all_nodes(const pmix_proc_t procs[], std::size_t count) {
  std::set<int> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    if (procs[i].rank == PMIX_RANK_WILDCARD) return true;
    if (procs[i].rank < server->job.node_of_rank.size())
      nodes.insert(server->job.node_of_rank[procs[i].rank]);
  }
  return nodes.size() == server->job.nodes();
}

// What went wrong on this node before the fence came to us; all others must hear of it.
std::int32_t local_status(const pmix_info_t info[], std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::strncmp(info[i].key, PMIX_LOCAL_COLLECTIVE_STATUS, PMIX_MAX_KEYLEN) == 0 &&
        info[i].value.type == PMIX_STATUS)
      return info[i].value.data.status;
  return PMIX_SUCCESS;
}

// Four bytes of status before the data.
std::string blob_of(std::int32_t status, const char* data, std::size_t length) {
  std::string blob(sizeof status, '\0');
  std::memcpy(blob.data(), &status, sizeof status);
  if (length > 0) blob.append(data, length);
  return blob;
}

void log(const std::string& text) {
  server->host.log(server->host.context, text.c_str());
}

// --- callbacks: on libpmix's thread ---

pmix_status_t client_connected(const pmix_proc_t* proc, void*, pmix_info_t*, std::size_t, pmix_op_cbfunc_t,
                               void*) {
  server->queue.push(
      [rank = static_cast<int>(proc->rank)] { server->host.connected(server->host.context, rank); });
  return PMIX_OPERATION_SUCCEEDED;
}

// The rank is held until `done` is called, so the agent hears of its finalize before it can be gone.
pmix_status_t client_finalized(const pmix_proc_t* proc, void*, pmix_op_cbfunc_t done, void* data) {
  server->queue.push([rank = static_cast<int>(proc->rank), done, data] {
    server->host.finalized(server->host.context, rank);
    if (done != nullptr) done(PMIX_SUCCESS, data);
  });
  return PMIX_SUCCESS;
}

pmix_status_t client_aborted(const pmix_proc_t* proc, void*, int code, const char message[], pmix_proc_t*,
                             std::size_t, pmix_op_cbfunc_t done, void* data) {
  const std::string text = message == nullptr ? "" : message;
  server->queue.push([rank = static_cast<int>(proc->rank), code, text, done, data] {
    server->host.aborted(server->host.context, rank, code, text.c_str());
    if (done != nullptr) done(PMIX_SUCCESS, data);
  });
  return PMIX_SUCCESS;
}

void begin_fence(const std::string& who, const std::string& blob, Waiting waiting) {
  const std::string key = "pmix/" + who + "/" + std::to_string(server->fences[who]++);
  server->waiting[key] = waiting;
  server->host.exchange(server->host.context, key.c_str(), blob.data(), blob.size());
}

// `data` is ours to free.
pmix_status_t fence(const pmix_proc_t procs[], std::size_t count, const pmix_info_t info[], std::size_t infos,
                    char* data, std::size_t length, pmix_modex_cbfunc_t done, void* done_data) {
  const std::string who = participants(procs, count);
  const std::string blob = blob_of(local_status(info, infos), data, length);
  std::free(data);
  if (!on_all_nodes(procs, count)) {
    server->queue.push(
        [who] { log("a PMIx fence of ranks " + who + ", which leaves nodes out, is not supported"); });
    return PMIX_ERR_NOT_SUPPORTED;
  }
  server->queue.push([who, blob, done, done_data] { begin_fence(who, blob, {done, done_data}); });
  return PMIX_SUCCESS;
}

pmix_status_t direct_modex(const pmix_proc_t*, const pmix_info_t*, std::size_t, pmix_modex_cbfunc_t, void*) {
  return PMIX_ERR_NOT_FOUND;
}

// Never called for what it is needed for: libpmix takes clean-up requests (of shared-memory files) itself,
// but only where the host has a job control.
pmix_status_t job_control(const pmix_proc_t*, const pmix_proc_t*, std::size_t, const pmix_info_t*,
                          std::size_t, pmix_info_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

// A libpmix that is newer than the headers of this build copies functions that they do not have yet: they are
// null.
struct Callbacks {
  pmix_server_module_t known;
  void* of_newer_versions[64];
};

Callbacks callbacks() {
  Callbacks out;
  std::memset(&out, 0, sizeof out);
  pmix_server_module_t& module = out.known;
  module.client_connected2 = client_connected;
  module.client_finalized = client_finalized;
  module.abort = client_aborted;
  module.fence_nb = fence;
  module.direct_modex = direct_modex;
  module.job_control = job_control;
  return out;
}

// --- the table: on the agent's thread ---

const char* library_version() {
  return PMIx_Get_version();
}

const char* register_ranks() {
  for (const int rank : server->job.local_ranks()) {
    const pmix_proc_t proc = process(server->job.name_space, static_cast<pmix_rank_t>(rank));
    const pmix_status_t status =
        PMIx_server_register_client(&proc, ::geteuid(), ::getegid(), nullptr, nullptr, nullptr);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
      return failed("PMIx_server_register_client", status);
  }
  return nullptr;
}

const char* register_job() {
  PmixKeys keys;
  if (const pmix_status_t status = fill_job_keys(server->job, keys); status != PMIX_SUCCESS)
    return failed("PMIx_generate_regex", status);
  const auto local = static_cast<int>(server->job.local_ranks().size());
  const pmix_status_t status = PMIx_server_register_nspace(server->job.name_space.c_str(), local, keys.data(),
                                                           keys.size(), nullptr, nullptr);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    return failed("PMIx_server_register_nspace", status);
  return register_ranks();
}

void stop() {
  if (!server) return;
  server->queue.run_all();
  PMIx_server_deregister_nspace(server->job.name_space.c_str(), nullptr, nullptr);
  PMIx_server_finalize();
  server.reset();
}

// libpmix 5 gives ranks the job's data in a memory segment that they have to map where the server has it, and
// under our server they fail to (PMIX_ERR_OUT_OF_RESOURCE). Its other store works. A user's own choice stays.
void choose_data_store() {
  const char* digits = std::strpbrk(PMIx_Get_version(), "0123456789");
  if (digits != nullptr && std::atoi(digits) >= 5) ::setenv("PMIX_MCA_gds", "hash", 0);
}

const char* start(const DlrunPmixJob* job, const DlrunPmixHost* host) {
  if (server) return "a job is being served already";
  if (!PmixKeys::can_load()) return "libpmix has neither PMIx_Info_load nor pmix_value_load";
  server = std::make_unique<Server>(*job, *host);
  if (server->queue.fd() < 0) {
    server.reset();
    return "no eventfd";
  }
  choose_data_store();
  static Callbacks module = callbacks();  // libpmix keeps the address
  PmixKeys keys;
  keys.text(PMIX_SERVER_TMPDIR, server->job.scratch);
  keys.text(PMIX_SYSTEM_TMPDIR, server->job.scratch);
  keys.text(PMIX_SERVER_NSPACE, "dlrun-server-" + server->job.name_space);
  keys.rank(PMIX_SERVER_RANK, static_cast<pmix_rank_t>(server->job.node));
  keys.text(PMIX_HOSTNAME, server->job.node_names[static_cast<std::size_t>(server->job.node)]);
  const pmix_status_t status = PMIx_server_init(&module.known, keys.data(), keys.size());
  if (status != PMIX_SUCCESS) {
    server.reset();
    return failed("PMIx_server_init", status);
  }
  const char* problem = register_job();
  if (problem != nullptr) stop();
  return problem;
}

int event_fd() {
  return server->queue.fd();
}

void dispatch() {
  server->queue.run_all();
}

const char* environment(int rank, const char* const** entries) {
  const pmix_proc_t proc = process(server->job.name_space, static_cast<pmix_rank_t>(rank));
  char** block = nullptr;
  const pmix_status_t status = PMIx_server_setup_fork(&proc, &block);
  server->environment.clear();
  server->environment_pointers.clear();
  for (char** entry = block; entry != nullptr && *entry != nullptr; ++entry) {
    server->environment.emplace_back(*entry);
    std::free(*entry);
  }
  std::free(block);
  if (status != PMIX_SUCCESS) return failed("PMIx_server_setup_fork", status);
  for (const std::string& entry : server->environment) server->environment_pointers.push_back(entry.c_str());
  server->environment_pointers.push_back(nullptr);
  *entries = server->environment_pointers.data();
  return nullptr;
}

void release(void* memory) {
  delete static_cast<std::string*>(memory);
}

void exchanged(const char* key, const char* const* blobs, const std::size_t* lengths, int count) {
  const auto found = server->waiting.find(key);
  if (found == server->waiting.end()) return;
  const Waiting waiting = found->second;
  server->waiting.erase(found);
  auto* all = new std::string;  // libpmix reads it later and then calls release
  std::int32_t worst = PMIX_SUCCESS;
  for (int i = 0; i < count; ++i) {
    std::int32_t status = PMIX_ERROR;
    if (lengths[i] >= sizeof status) {
      std::memcpy(&status, blobs[i], sizeof status);
      all->append(blobs[i] + sizeof status, lengths[i] - sizeof status);
    }
    if (status != PMIX_SUCCESS) worst = status;
  }
  waiting.done(worst, all->data(), all->size(), waiting.data, release, all);
}

constexpr DlrunPmixTable table = {
    .version = DLRUN_PMIX_TABLE_VERSION,
    .library_version = library_version,
    .start = start,
    .event_fd = event_fd,
    .dispatch = dispatch,
    .environment = environment,
    .exchanged = exchanged,
    .stop = stop,
};

}  // namespace

}  // namespace dlrun::pmix

extern "C" __attribute__((visibility("default"))) const DlrunPmixTable* dlrun_pmix_table() {
  return &dlrun::pmix::table;
}
