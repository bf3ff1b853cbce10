// For libraries that take a setting from the process's environment and in no other way. It is seen by them
// alone: children get an Environment that was captured before. Before the first thread, since it changes what
// others may be reading.
#pragma once

namespace dlrun {

void set_for_libraries(const char* name, const char* value);

}  // namespace dlrun
