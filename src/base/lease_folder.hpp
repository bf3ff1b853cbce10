// LeaseFolder: who may use something that one process at a time may use, as numbered files in a folder of a
// file system that needs no locks. A lease is made once, under the next number, with its owner in it; the
// newest one counts. So of two processes that want it at the same time one gets it, and one that was thought
// dead and comes back sees that its number is not the newest any more. Who has ended is judged elsewhere
// (lease.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/base/process_identity.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

struct LeaseOwner {
  ProcessIdentity process;
  std::string job;  // the scheduler's id; empty where there is none
  std::string run;  // what people call it
};
// "run flowers-4647 (job 12) on n3, process 4711": for error texts.
std::string text_of(const LeaseOwner& owner);

struct LeaseFile {
  int number = 0;  // 0: nobody ever had one
  LeaseOwner owner;
  bool released = false;
  std::string content;  // another one at each renewal
};

class LeaseFolder {
 public:
  explicit LeaseFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path file_of(int number) const;

  Result<void> create() const;
  Result<LeaseFile> newest() const;
  Result<int> newest_number() const;
  // An open descriptor for renewals; empty where somebody else has made this number.
  Result<std::optional<UniqueFd>> make(int number, const LeaseOwner& owner) const;
  Result<void> release(int number) const;
  void remove_old(int number) const;  // but the last few before this one

 private:
  std::filesystem::path folder_;
};

// The file's content; all renewals of one owner are of the same length, so that they can be written in place.
std::string lease_text(const LeaseOwner& owner, std::uint64_t renewal);
// One that is just being written has no owner yet, and those of older versions had the job's id alone.
LeaseOwner owner_in(const std::string& content);

}  // namespace dlrun
