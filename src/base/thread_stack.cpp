#include "src/base/thread_stack.hpp"

#include <pthread.h>

namespace dlrun {

void give_threads_stack() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t size = 0;
  if (::pthread_attr_getstacksize(&attributes, &size) == 0 && size < kThreadStack &&
      ::pthread_attr_setstacksize(&attributes, kThreadStack) == 0)
    (void)::pthread_setattr_default_np(&attributes);  // else a thread is as small as before
  ::pthread_attr_destroy(&attributes);
}

}  // namespace dlrun
