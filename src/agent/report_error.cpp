#include "src/agent/report_error.hpp"

#include <string>

#include <unistd.h>

#include "src/base/exit_code.hpp"

namespace dlrun::agent {

int report_error(const Error& error) {
  const std::string text = "dlrun-agent: error: " + error.text() + "\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  return to_int(exit_code(error.kind));
}

}  // namespace dlrun::agent
