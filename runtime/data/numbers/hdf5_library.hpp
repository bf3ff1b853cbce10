// Hdf5Library: the site's HDF5, of 1.10 or later, by its public API, loaded at run time. The few types are
// declared here as its headers have them, so that a build needs no HDF5. It is not safe with threads unless
// it was built so: every call is made under lock().
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "src/base/result.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::runtime {

class Hdf5Library {
 public:
  using Id = std::int64_t;          // hid_t
  using Size = unsigned long long;  // hsize_t

  /// The first that is found of the names that distributions give it.
  static Result<Hdf5Library> open();
  /// Held by whoever calls HDF5, in the whole process. HDF5 prints nothing on this thread from then on.
  std::unique_lock<std::mutex> lock() const;
  /// What went wrong in the last call, in HDF5's own words.
  std::string problem() const;
  Id native_float() const { return *native_float_; }
  Id native_double() const { return *native_double_; }

  Id (*file_open)(const char*, unsigned, Id) = nullptr;
  int (*file_close)(Id) = nullptr;
  Id (*dataset_open)(Id, const char*, Id) = nullptr;
  int (*dataset_close)(Id) = nullptr;
  Id (*dataset_space)(Id) = nullptr;
  Id (*dataset_type)(Id) = nullptr;
  int (*dataset_read)(Id, Id, Id, Id, Id, void*) = nullptr;
  int (*link_exists)(Id, const char*, Id) = nullptr;
  int (*type_class)(Id) = nullptr;
  int (*type_sign)(Id) = nullptr;
  std::size_t (*type_size)(Id) = nullptr;
  int (*type_close)(Id) = nullptr;
  int (*space_axes)(Id) = nullptr;
  int (*space_extents)(Id, Size*, Size*) = nullptr;
  int (*space_select)(Id, int, const Size*, const Size*, const Size*, const Size*) = nullptr;
  Id (*space_create)(int, const Size*, const Size*) = nullptr;
  int (*space_close)(Id) = nullptr;

 private:
  explicit Hdf5Library(SharedLibrary library) : library_(std::move(library)) {}
  Result<void> load();

  SharedLibrary library_;
  int (*show_errors_)(Id, void*, void*) = nullptr;
  int (*walk_errors_)(Id, int, int (*)(unsigned, const void*, void*), void*) = nullptr;
  const Id* native_float_ = nullptr;
  const Id* native_double_ = nullptr;
};

}  // namespace dlrun::runtime
