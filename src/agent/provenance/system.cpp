// The system and its kernel, as this node has them.
#include <sys/utsname.h>

#include "src/agent/provenance/facts.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {

Json find_system() {
  utsname kernel{};
  ::uname(&kernel);
  std::string name;
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"})
    for (const std::string& line : split(read_file(file).value_or(""), '\n'))
      if (name.empty() && line.starts_with("PRETTY_NAME=")) name = line.substr(line.find('=') + 1);
  std::erase(name, '"');
  return {{"name", name.empty() ? Json(nullptr) : Json(name)},
          {"kernel", kernel.release},
          {"machine", kernel.machine}};
}

}  // namespace dlrun::agent
