// Writes HDF5 files for tests, by the library that is loaded at run time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/shared_library.hpp"

namespace dlrun::test {

class Hdf5Writer {
 public:
  enum class Lies { contiguous, chunked_and_packed };

  explicit Hdf5Writer(const std::filesystem::path& path) {
    call<int()>("H5open")();
    file_ = call<Id(const char*, unsigned, Id, Id)>("H5Fcreate")(path.c_str(), 2, 0, 0);  // 2: truncate
  }
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  ~Hdf5Writer() { call<int(Id)>("H5Fclose")(file_); }

  void group(const std::string& name) {
    call<int(Id)>("H5Gclose")(
        call<Id(Id, const char*, Id, Id, Id)>("H5Gcreate2")(file_, name.c_str(), 0, 0, 0));
  }
  void floats(const std::string& name, const std::vector<unsigned long long>& shape,
              const std::vector<float>& numbers, Lies lies = Lies::contiguous) {
    add(name, shape, numbers.data(), "H5T_NATIVE_FLOAT_g", lies);
  }
  void integers(const std::string& name, const std::vector<unsigned long long>& shape,
                const std::vector<std::int32_t>& numbers) {
    add(name, shape, numbers.data(), "H5T_NATIVE_INT_g", Lies::contiguous);
  }

 private:
  using Id = std::int64_t;
  template <class Function>
  Function* call(const char* name) {
    return *library_.symbol<Function>(name);
  }
  void add(const std::string& name, const std::vector<unsigned long long>& shape, const void* numbers,
           const char* type_name, Lies lies) {
    using Size = unsigned long long;
    const Id type = *call<const Id>(type_name);
    const int axes = static_cast<int>(shape.size());
    const Id space = call<Id(int, const Size*, const Size*)>("H5Screate_simple")(axes, shape.data(), nullptr);
    const Id how = call<Id(Id)>("H5Pcreate")(*call<const Id>("H5P_CLS_DATASET_CREATE_ID_g"));
    if (lies == Lies::chunked_and_packed) {
      std::vector<Size> chunk = shape;
      chunk[0] = 2;
      call<int(Id, int, const Size*)>("H5Pset_chunk")(how, axes, chunk.data());
      call<int(Id, unsigned)>("H5Pset_deflate")(how, 6);
    }
    const Id set = call<Id(Id, const char*, Id, Id, Id, Id, Id)>("H5Dcreate2")(file_, name.c_str(), type,
                                                                               space, 0, how, 0);
    call<int(Id, Id, Id, Id, Id, const void*)>("H5Dwrite")(set, type, 0, 0, 0, numbers);
    call<int(Id)>("H5Dclose")(set);
    call<int(Id)>("H5Pclose")(how);
    call<int(Id)>("H5Sclose")(space);
  }

  // Debian 12's, or a later one's.
  static SharedLibrary open_library() {
    auto found = SharedLibrary::open("libhdf5_serial.so.103");
    return found ? *found : *SharedLibrary::open("libhdf5_serial.so.310");
  }

  SharedLibrary library_ = open_library();
  Id file_ = -1;
};

}  // namespace dlrun::test
