#include "src/agent/provenance/python_packages.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "src/agent/end_helper.hpp"
#include "src/base/pipe.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kLimit{20};
constexpr std::size_t kMaxText = std::size_t{1} << 20;

// The folder of the program is not searched: a file json.py in it would be run.
constexpr const char* kQuestion =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "import json\n"
    "from importlib import metadata\n"
    "found = {}\n"
    "for one in metadata.distributions():\n"
    "    name = one.metadata['Name']\n"
    "    if name and name not in found: found[name] = one.version\n"
    "print(json.dumps({'version': sys.version.split()[0], 'packages': "
    "dict(sorted(found.items())[:2000])}))\n";

}  // namespace

bool is_python(const ProgramSeen& program) {
  std::error_code problem;
  const auto mounts = [&](const std::string& process) {
    return std::filesystem::read_symlink("/proc/" + process + "/ns/mnt", problem);
  };
  return mounts(std::to_string(program.pid)) == mounts("self") &&
         program.executable.substr(program.executable.rfind('/') + 1).starts_with("python");
}

std::unique_ptr<PythonPackages> PythonPackages::ask(const ProgramSeen& program, EventLoop& loop,
                                                    std::function<void(Json)> found) {
  // By the name under which it was started: that of a virtual environment is a link, and tells its folder.
  const std::string name = program.argv.empty() ? program.executable : program.argv[0];
  const auto file = find_program(name, program.environment, program.working_directory);
  auto pipe = make_pipe();
  if (!pipe) return nullptr;
  Environment environment = program.environment;
  for (const char* own : {"DLRUN_CONTROL", "PYTHONINSPECT", "LD_PRELOAD"}) environment.unset(own);
  const auto pid = start_child({.argv = {file ? *file : program.executable, "-B", "-c", kQuestion},
                                .environment = environment,
                                .working_directory = program.working_directory,
                                .stdout_fd = pipe->write.get(),
                                .inherited_fds = {}});
  if (!pid) return nullptr;
  std::unique_ptr<PythonPackages> out(new PythonPackages(loop, std::move(found)));
  out->pid_ = *pid;
  set_nonblocking(pipe->read);
  out->out_ = std::move(pipe->read);
  loop.watch(out->out_.get(), POLLIN, [self = out.get()](short) { self->read(); });
  out->limit_ = loop.after(kLimit, [self = out.get()] {
    self->limit_.reset();
    self->end();
    self->found_(nullptr);
  });
  return out;
}

PythonPackages::~PythonPackages() {
  end();
}

void PythonPackages::read() {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(out_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got > 0 && text_.size() < kMaxText)
    return void(text_.append(piece.data(), static_cast<std::size_t>(got)));
  end();
  auto answer = parse_json(text_, "python");
  found_(answer && answer->is_object() ? std::move(*answer) : Json(nullptr));
}

void PythonPackages::end() {
  if (limit_) loop_.cancel(*std::exchange(limit_, std::nullopt));
  if (out_) loop_.unwatch(out_.get());
  out_.reset();
  if (pid_ > 0) end_helper(std::exchange(pid_, 0));
}

}  // namespace dlrun::agent
