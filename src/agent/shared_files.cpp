#include "src/agent/shared_files.hpp"

#include <filesystem>

#include <sys/stat.h>

#include "src/agent/job_name.hpp"
#include "src/agent/pmi/mpi_service.hpp"

namespace dlrun::agent {

namespace {

std::string folder_of(const plan::Plan& plan, int node) {
  return "/dev/shm/" + job_name(plan) + "-n" + std::to_string(node);
}

void remove(const std::string& folder) {
  std::error_code ignored;  // it is not there, or not ours
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace

SharedFiles::SharedFiles(const plan::Plan& plan, NodeIndex node) : folder_(folder_of(plan, node.get())) {
  remove(folder_);
  plan::Plan earlier = plan;  // an attempt whose agent was killed could not clean up
  for (earlier.attempt = 1; earlier.attempt < plan.attempt; ++earlier.attempt)
    remove(folder_of(earlier, node.get()));
  if (::mkdir(folder_.c_str(), 0700) != 0) folder_.clear();  // never a folder or link that was there before
}

SharedFiles::~SharedFiles() {
  if (!folder_.empty()) remove(folder_);
}

void remove_mpi_leftovers(const plan::Plan& plan) {
  for (const plan::NodePlan& node : plan.nodes) remove(folder_of(plan, node.index.get()));
}

}  // namespace dlrun::agent
