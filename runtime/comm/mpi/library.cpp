// See library.hpp.
#include "runtime/comm/mpi/library.hpp"

#include "src/base/install.hpp"

namespace dlrun::runtime {
namespace {

std::string_view plugin_name(MpiFlavour flavour) {
  return flavour == MpiFlavour::openmpi ? "libdlrun-mpi-openmpi.so" : "libdlrun-mpi-mpich.so";
}

}  // namespace

Result<MpiLibrary> MpiLibrary::open(MpiFlavour flavour) {
  const Installation installation = TRY(this_installation());
  const auto path = installation.plugins / plugin_name(flavour);
  SharedLibrary library = TRY(SharedLibrary::open(path));
  auto* const table_of = TRY(library.symbol<const DlrunMpiTable*()>(DLRUN_MPI_TABLE_SYMBOL));
  const DlrunMpiTable* table = table_of();
  if (table->version != DLRUN_MPI_TABLE_VERSION)
    return fail(Error{
        .kind = ErrorKind::unavailable,
        .what = fmt::format("version mismatch: the plug-in has version {} of the table, this program {}",
                            table->version, DLRUN_MPI_TABLE_VERSION),
        .where = path.string(),
        .hint = "install the plug-ins of the same build as the program"});
  return MpiLibrary(std::move(library), table, flavour);
}

Result<void> MpiLibrary::check(int error, std::string_view call) const {
  if (error == 0) return {};
  char text[512] = {};
  table_->error_text(error, text, sizeof text);
  return fail(Error{.kind = ErrorKind::lost,
                    .what = fmt::format("{} failed in {}: {}", call, table_->flavour, text),
                    .where = fmt::format("rank {}", table_->rank())});
}

// The first line of the long text that the library tells of itself.
std::string MpiLibrary::version() const {
  char text[256] = {};
  table_->library_version(text, sizeof text);
  std::string line(text);
  line = line.substr(0, line.find_first_of(",\n"));
  for (char& c : line)
    if (c == '\t' || c == ':') c = ' ';
  return line;
}

}  // namespace dlrun::runtime
