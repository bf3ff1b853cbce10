// Writes what this process was started with as JSON to $DUMP_TO/RANK-ATTEMPT.json: argv, environment, working
// directory, affinity, limits, descriptors, signals, host, device files. Static, so that it runs in any
// container; with DUMP_MPI, it then joins its MPI world, whose library is $DUMP_MPI. It ends with the code
// that $DUMP_CODE_ATTEMPT gives for the attempt ("1:75" is 75 in attempt 1), else with 0.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char** environ;

namespace {

// Bytes that are no ASCII become \u00XX: the reader takes them back byte by byte.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const unsigned char c : text) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\u%04x", c);
    out += c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? std::string(hex)
                                                         : std::string(1, static_cast<char>(c));
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& items, const char* ends = "[]") {
  std::string out(1, ends[0]);
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + item;
  return out + ends[1];
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // this program is a test's, not dlrun's
  return value == nullptr ? "" : value;
}

std::string arguments(char** words) {
  std::vector<std::string> out;
  for (; *words != nullptr; ++words) out.push_back(quoted(*words));
  return list(out);
}

std::string environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.push_back(quoted(*entry));
  return list(out);
}

std::string affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<std::string> out;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) out.push_back(std::to_string(i));
  return list(out);
}

std::string limits() {
  std::vector<std::string> out;
  for (int i = 0; i < RLIM_NLIMITS; ++i) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource>(i), &limit);
    out.push_back("[" + std::to_string(static_cast<long long>(limit.rlim_cur)) + ", " +
                  std::to_string(static_cast<long long>(limit.rlim_max)) + "]");
  }
  return list(out);
}

std::string descriptors() {
  std::vector<std::string> out;
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    char target[4096];
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
    if (size > 0 && std::atoi(entry->d_name) != ::dirfd(folder))
      out.push_back(quoted(entry->d_name) + ": " +
                    quoted(std::string(target, static_cast<std::size_t>(size))));
  }
  ::closedir(folder);
  return list(out, "{}");
}

std::string signals() {
  std::vector<std::string> out;
  char line[256];
  std::FILE* file = std::fopen("/proc/self/status", "r");
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, "SigBlk:", 7) == 0 || std::strncmp(line, "SigIgn:", 7) == 0)
      out.push_back(quoted(std::string(line, 6)) + ": " +
                    std::to_string(std::strtoull(line + 7, nullptr, 16)));
  if (file != nullptr) std::fclose(file);
  return list(out, "{}");
}

std::string devices() {
  std::vector<std::string> out;
  DIR* folder = ::opendir("/dev");
  while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder))
    if (std::strncmp(entry->d_name, "nvidia", 6) == 0) out.push_back(quoted(entry->d_name));
  if (folder != nullptr) ::closedir(folder);
  return list(out);
}

std::string file_mask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return std::to_string(mask);
}

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

// Whether the port that the plan gives to this rank is its to open.
bool can_bind(const std::string& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port.c_str())));
  const bool bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

#ifdef DUMP_MPI
// By dlopen, so that one program does for every MPI.
bool join_world() {
  void* library = ::dlopen(variable("DUMP_MPI").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(int*, char***)>(::dlsym(library, "MPI_Init"));
  const auto finalize = reinterpret_cast<int (*)()>(::dlsym(library, "MPI_Finalize"));
  return init != nullptr && finalize != nullptr && init(nullptr, nullptr) == 0 && finalize() == 0;
}
#endif

int exit_code(const std::string& attempt) {
  const std::string asked = variable("DUMP_CODE_ATTEMPT");
  return asked.starts_with(attempt + ":") ? std::atoi(asked.c_str() + attempt.size() + 1) : 0;
}

}  // namespace

int main(int, char** argv) {
  char folder[4096] = "";
  if (::getcwd(folder, sizeof folder) == nullptr) return 90;
  utsname machine{};
  ::uname(&machine);
  const std::string attempt = variable("DLRUN_ATTEMPT"), port = variable("RANK_PORT");
  const std::string text = list(
      {"\"argv\": " + arguments(argv), "\"environment\": " + environment(), "\"cwd\": " + quoted(folder),
       "\"affinity\": " + affinity(), "\"limits\": " + limits(), "\"descriptors\": " + descriptors(),
       "\"signals\": " + signals(), "\"host\": " + quoted(machine.nodename), "\"devices\": " + devices(),
       "\"umask\": " + file_mask(),
       std::string("\"control_is_socket\": ") + (is_socket(variable("DLRUN_CONTROL")) ? "true" : "false"),
       std::string("\"port_is_free\": ") + (port.empty() || can_bind(port) ? "true" : "false")},
      "{}");
  const std::string path = variable("DUMP_TO") + "/" + variable("DLRUN_RANK") + "-" + attempt + ".json";
  std::FILE* file = std::fopen((path + ".tmp").c_str(), "w");
  if (file == nullptr) return 91;
  std::fputs(text.c_str(), file);
  if (std::fclose(file) != 0 || std::rename((path + ".tmp").c_str(), path.c_str()) != 0) return 92;
#ifdef DUMP_MPI
  if (!variable("DUMP_MPI").empty() && !join_world()) return 93;
#endif
  return exit_code(attempt);
}
