#include "src/base/temporary_folder.hpp"

namespace dlrun {

std::string temporary_folder(const Environment& environment) {
  const std::string folder = environment.get("TMPDIR");
  return folder.starts_with('/') ? folder : "/tmp";
}

}  // namespace dlrun
