// The checkpoints that a program writes by itself, by the pattern that the job file gives (checkpoint.files):
// which is the newest, and whether another one has come. It reads names and times, never contents.
#pragma once

#include <string>

namespace dlrun::job {

// "NAME@TIME" of the newest file that fits the pattern; empty where none does. Another mark: another one was
// written.
std::string mark_of_files(const std::string& pattern);
// The name in a mark.
std::string name_in_mark(const std::string& mark);

// Over one run: what was written since it began, and since it was asked to stop. An empty pattern fits no
// file.
class CheckpointFiles {
 public:
  explicit CheckpointFiles(std::string pattern);
  void asked();  // the first call counts
  struct Found {
    std::string newest;  // written since the run began; empty: none
    bool after_asked = false;
  };
  Found found() const;

 private:
  std::string pattern_, at_begin_, at_asked_;
  bool was_asked_ = false;
};

}  // namespace dlrun::job
