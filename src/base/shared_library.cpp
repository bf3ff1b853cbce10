#include "src/base/shared_library.hpp"

#include <dlfcn.h>

#include "src/base/unload_library.hpp"

namespace dlrun {
namespace {

// A reference more, or null.
void* loaded(const std::filesystem::path& name) {
  return ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

// Never dlclose by itself: MPI and CUDA libraries leave threads and exit handlers behind that would run
// unmapped code.
SharedLibrary::SharedLibrary(void* handle) : handle_(handle, [](void*) {}) {}

Result<SharedLibrary> SharedLibrary::open(const std::filesystem::path& name, Symbols symbols) {
  void* handle =
      ::dlopen(name.c_str(), RTLD_NOW | (symbols == Symbols::seen_by_all ? RTLD_GLOBAL : RTLD_LOCAL));
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorKind::unavailable, "cannot load {}",
                reason == nullptr ? name.string() : std::string(reason));
  }
  return SharedLibrary(handle);
}

Result<void*> SharedLibrary::address_of(const char* name) const {
  void* address = ::dlsym(handle_.get(), name);
  if (address == nullptr) return fail(ErrorKind::unavailable, "the library has no symbol {}", name);
  return address;
}

bool is_library_loaded(const std::filesystem::path& name) {
  void* const handle = loaded(name);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

void unload_library(const std::filesystem::path& name) {
  void* const handle = loaded(name);
  if (handle == nullptr) return;
  ::dlclose(handle);
  ::dlclose(handle);
}

}  // namespace dlrun
