#include "src/base/library_setting.hpp"

#include <cstdlib>

namespace dlrun {

void set_for_libraries(const char* name, const char* value) {
  ::setenv(name, value, 1);
}

}  // namespace dlrun
