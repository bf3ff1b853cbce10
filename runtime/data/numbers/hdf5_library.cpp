// See hdf5_library.hpp.
#include "runtime/data/numbers/hdf5_library.hpp"

#include "src/base/hdf5_names.hpp"

namespace dlrun::runtime {
namespace {

struct Entry {  // H5E_error2_t
  std::int64_t class_id, major, minor;
  unsigned line;
  const char* function;
  const char* file;
  const char* text;
};

int take_first(unsigned, const void* entry, void* out) {
  auto& text = *static_cast<std::string*>(out);
  const char* const said = static_cast<const Entry*>(entry)->text;
  if (text.empty() && said != nullptr) text = said;
  return 0;
}

Result<SharedLibrary> find_library() {
  for (const char* name : kHdf5Names)
    if (auto found = SharedLibrary::open(name)) return found;
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "data of format hdf5 need the HDF5 library, and none of its names can be loaded, "
                            "such as libhdf5.so.103",
                    .hint = "install it (Debian: libhdf5-103-1), or load the site's module: "
                            "environment.modules in the job file"});
}

std::unique_lock<std::mutex> lock_all_calls() {
  static std::mutex all_calls;
  return std::unique_lock(all_calls);
}

}  // namespace

// What goes wrong is ours to tell. A library that is safe with threads has this setting for each of them.
std::unique_lock<std::mutex> Hdf5Library::lock() const {
  auto out = lock_all_calls();
  show_errors_(0, nullptr, nullptr);
  return out;
}

Result<Hdf5Library> Hdf5Library::open() {
  Hdf5Library out(TRY(find_library()));
  TRY(out.load());
  return out;
}

Result<void> Hdf5Library::load() {
  auto* const start = TRY(library_.symbol<int()>("H5open"));
  show_errors_ = TRY((library_.symbol<int(Id, void*, void*)>("H5Eset_auto2")));
  walk_errors_ =
      TRY((library_.symbol<int(Id, int, int (*)(unsigned, const void*, void*), void*)>("H5Ewalk2")));
  file_open = TRY((library_.symbol<Id(const char*, unsigned, Id)>("H5Fopen")));
  file_close = TRY(library_.symbol<int(Id)>("H5Fclose"));
  dataset_open = TRY((library_.symbol<Id(Id, const char*, Id)>("H5Dopen2")));
  dataset_close = TRY(library_.symbol<int(Id)>("H5Dclose"));
  dataset_space = TRY(library_.symbol<Id(Id)>("H5Dget_space"));
  dataset_type = TRY(library_.symbol<Id(Id)>("H5Dget_type"));
  dataset_read = TRY((library_.symbol<int(Id, Id, Id, Id, Id, void*)>("H5Dread")));
  link_exists = TRY((library_.symbol<int(Id, const char*, Id)>("H5Lexists")));
  type_class = TRY(library_.symbol<int(Id)>("H5Tget_class"));
  type_sign = TRY(library_.symbol<int(Id)>("H5Tget_sign"));
  type_size = TRY(library_.symbol<std::size_t(Id)>("H5Tget_size"));
  type_close = TRY(library_.symbol<int(Id)>("H5Tclose"));
  space_axes = TRY(library_.symbol<int(Id)>("H5Sget_simple_extent_ndims"));
  space_extents = TRY((library_.symbol<int(Id, Size*, Size*)>("H5Sget_simple_extent_dims")));
  space_select = TRY((library_.symbol<int(Id, int, const Size*, const Size*, const Size*, const Size*)>(
      "H5Sselect_hyperslab")));
  space_create = TRY((library_.symbol<Id(int, const Size*, const Size*)>("H5Screate_simple")));
  space_close = TRY(library_.symbol<int(Id)>("H5Sclose"));
  native_float_ = TRY(library_.symbol<const Id>("H5T_NATIVE_FLOAT_g"));
  native_double_ = TRY(library_.symbol<const Id>("H5T_NATIVE_DOUBLE_g"));
  const auto held = lock_all_calls();
  if (start() < 0) return fail(ErrorKind::unavailable, "the HDF5 library does not start");
  return {};
}

std::string Hdf5Library::problem() const {
  constexpr int kInnermostFirst = 0;
  std::string out;
  walk_errors_(0, kInnermostFirst, take_first, &out);
  return out.empty() ? "HDF5 does not say why" : out;
}

}  // namespace dlrun::runtime
