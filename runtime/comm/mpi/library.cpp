// See library.hpp.
#include "runtime/comm/mpi/library.hpp"

#include "src/base/install.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

struct Plugin {
  fs::path path;
  SharedLibrary library;
};

Result<Plugin> load(const fs::path& path) {
  return Plugin{path, TRY(SharedLibrary::open(path))};
}

// The first plug-in of MPICH that can be loaded; where none can, the error is the first one's.
Result<Plugin> load_mpich(const fs::path& folder) {
  auto first = load(folder / kMpichPlugins.front());
  if (first) return first;
  auto second = load(folder / kMpichPlugins.back());
  return second ? std::move(second) : std::move(first);
}

}  // namespace

Result<MpiLibrary> MpiLibrary::open(MpiFlavour flavour) {
  const Installation installation = TRY(this_installation());
  auto [path, library] = TRY(flavour == MpiFlavour::openmpi ? load(installation.plugins / kOpenMpiPlugin)
                                                            : load_mpich(installation.plugins));
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
