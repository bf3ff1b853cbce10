// What a checkpoint does in the folder of the run: a file is written, synced, read back, renamed and removed.
// A node whose mount is read-only, stale or slow shows it here and not after the first hour of training.
#include <chrono>
#include <functional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kBad = 5, kSlow = 0.5, kSlowBesideOthers = 10;  // seconds; times the median

using Step = std::function<Result<void>()>;

Result<void> checked(int result, std::string_view what) {
  if (result >= 0) return {};
  return fail(ErrorKind::io, "{}: {}", what, system_reason(errno));
}

// Gone with the value, whatever was renamed to what.
struct Files {
  std::string first, second;
  ~Files() {
    ::unlink(first.c_str());
    ::unlink(second.c_str());
  }
};

Result<void> write_it(const std::string& path, const std::string& content) {
  const UniqueFd fd(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  TRY(checked(fd.get(), "cannot create a file"));
  TRY(write_all(fd.get(), content, path));
  return checked(::fsync(fd.get()), "fsync");
}

Result<void> read_it(const std::string& path, const std::string& content) {
  if (TRY(read_file(path)) == content) return {};
  return fail(ErrorKind::io, "a file that was written has other content when it is read");
}

// The seconds of each step, or the first that fails.
Json timed(const std::vector<std::pair<std::string, Step>>& steps, Json out) {
  Seconds all{0};
  for (const auto& [name, step] : steps) {
    const auto began = std::chrono::steady_clock::now();
    const auto done = step();
    const Seconds took = std::chrono::steady_clock::now() - began;
    if (!done) return out["error"] = done.error().what, out;
    out[name] = took.count();
    all += took;
  }
  out["seconds"] = all.count();
  return out;
}

Json measure(const Question& question) {
  const std::string base = fmt::format("{}/.dlrun-check-{}-{}", question.directory, host_name(), ::getpid());
  const Files files{base, base + ".renamed"};
  const std::string content(question.level == Level::quick ? 64 << 10 : 4 << 20, 'd');
  return timed(
      {{"write", [&] { return write_it(files.first, content); }},
       {"read", [&] { return read_it(files.first, content); }},
       {"rename", [&] { return checked(::rename(files.first.c_str(), files.second.c_str()), "rename"); }},
       {"remove", [&] { return checked(::unlink(files.second.c_str()), "unlink"); }}},
      {{"directory", question.directory}});
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<double> all;
  for (const Sample& sample : samples)
    if (const auto seconds = number_of(sample.values, "seconds")) all.push_back(*seconds);
  const double usual = median(all);
  std::vector<Found> out;
  for (const Sample& sample : samples) {
    const double seconds = number_of(sample.values, "seconds").value_or(0);
    const bool slow = seconds > kSlow && seconds > kSlowBesideOthers * usual;
    if (seconds > kBad || slow)
      out.push_back({sample.node, seconds > kBad && slow ? State::bad : State::warning,
                     fmt::format("writing, reading and renaming a file in {} takes {}, usually {}",
                                 text_of(sample.values, "directory"), format_duration(Seconds(seconds)),
                                 format_duration(Seconds(usual)))});
  }
  return out;
}

}  // namespace

Check files_check() {
  return {.name = "files", .measure = measure, .judge = judge, .without_answer = State::bad};
}

}  // namespace dlrun::health
