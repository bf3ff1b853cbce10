// SharedLibrary: a plug-in or a site's own library, loaded at run time with RTLD_LOCAL, so that one build
// serves sites that have other versions of it or none. Absence is an ordinary Error; symbols are asked for by
// name.
#pragma once

#include <filesystem>
#include <memory>

#include "src/base/result.hpp"

namespace dlrun {

class SharedLibrary {
 public:
  // seen_by_all is for libraries whose own plug-ins expect to find their symbols (Slurm's), in processes that
  // do nothing else.
  enum class Symbols { kept_apart, seen_by_all };
  // `name` is a path, or a soname for the system's search. The Error carries the loader's own text.
  static Result<SharedLibrary> open(const std::filesystem::path& name, Symbols symbols = Symbols::kept_apart);

  // The address of `symbol`, as a T*. An Error where it is not there.
  template <class T>
  Result<T*> symbol(const char* name) const {
    void* address = TRY(address_of(name));
    return reinterpret_cast<T*>(address);
  }

 private:
  explicit SharedLibrary(void* handle);
  Result<void*> address_of(const char* name) const;
  std::shared_ptr<void> handle_;
};

}  // namespace dlrun
