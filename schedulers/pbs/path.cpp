#include "schedulers/pbs/path.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// "PBS_EXEC=/opt/pbs" of the configuration file; empty where it does not say.
std::string exec_folder(const Environment& environment) {
  if (const auto stated = environment.find("PBS_EXEC")) return *stated;
  const auto text = read_file(environment.get("PBS_CONF_FILE", "/etc/pbs.conf"));
  constexpr std::string_view key = "PBS_EXEC=";
  if (text)
    for (const std::string& line : split(*text, '\n'))
      if (trim(line).starts_with(key)) return std::string(trim(line).substr(key.size()));
  return {};
}

}  // namespace

Environment with_pbs_path(Environment environment) {
  std::string path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin");
  std::vector<std::string> known = split(path, ':');
  const auto add = [&](const std::string& folder) {
    if (!folder.starts_with('/') || std::find(known.begin(), known.end(), folder) != known.end()) return;
    known.push_back(folder);
    path += ":" + folder;
  };
  if (const std::string exec = exec_folder(environment); !exec.empty()) add(exec + "/bin");
  for (const std::string& folder : split(environment.get("PBS_O_PATH"), ':')) add(folder);
  environment.set("PATH", path);
  return environment;
}

}  // namespace dlrun
