// MpiLibrary: a loaded MPI plug-in: its table, and its errors as Errors. It includes no MPI.
#pragma once

#include <string>
#include <string_view>

#include "runtime/comm/mpi/table.h"
#include "src/base/shared_library.hpp"

namespace dlrun::runtime {

enum class MpiFlavour { openmpi, mpich };

class MpiLibrary {
 public:
  /// The plug-in of this installation for that MPI; an Error where it cannot be loaded or is of another
  /// build.
  static Result<MpiLibrary> open(MpiFlavour flavour);

  const DlrunMpiTable* operator->() const { return table_; }
  MpiFlavour flavour() const { return flavour_; }
  Result<void> check(int error, std::string_view call) const;
  std::string version() const;  // "Open MPI v4.1.4"

 private:
  MpiLibrary(SharedLibrary library, const DlrunMpiTable* table, MpiFlavour flavour)
      : library_(std::move(library)), table_(table), flavour_(flavour) {}
  SharedLibrary library_;
  const DlrunMpiTable* table_;
  MpiFlavour flavour_;
};

}  // namespace dlrun::runtime
