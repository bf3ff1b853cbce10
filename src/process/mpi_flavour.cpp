#include "src/process/mpi_flavour.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

#include "src/base/strings.hpp"
#include "src/process/elf_needed.hpp"

namespace dlrun {

namespace {

namespace fs = std::filesystem;

struct Mark {
  std::string_view prefix;
  MpiFlavour flavour;
};

// The longer prefixes first: libmpi.so.40 is Open MPI's, libmpi.so.12 the common name of the MPICH family.
constexpr std::array<Mark, 13> marks = {{
    {"libopen-pal.so", MpiFlavour::openmpi},
    {"libopen-rte.so", MpiFlavour::openmpi},
    {"libmpi.so.20", MpiFlavour::openmpi},
    {"libmpi.so.40", MpiFlavour::openmpi},
    {"libmpi_mpifh.so", MpiFlavour::openmpi},
    {"libmpi_usempi", MpiFlavour::openmpi},
    {"libmpi_cxx.so", MpiFlavour::openmpi},
    {"libmpich", MpiFlavour::mpich},
    {"libmpi.so.12", MpiFlavour::mpich},
    {"libmpi.so.0", MpiFlavour::mpich},
    {"libmpifort.so", MpiFlavour::mpich},
    {"libmpicxx.so", MpiFlavour::mpich},
    {"libmpi_cray.so", MpiFlavour::mpich},
}};

constexpr std::size_t kMaxLibraries = 1000;

MpiFlavour flavour_of_name(std::string_view library) {
  for (const Mark& mark : marks)
    if (library.starts_with(mark.prefix)) return mark.flavour;
  return MpiFlavour::unknown;
}

// The folders that the loader searches last. The cache it uses lists no others on a plain system.
std::vector<std::string> system_folders() {
  std::vector<std::string> folders = {"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"};
#if defined(__x86_64__)
  folders.insert(folders.begin(), {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"});
#elif defined(__aarch64__)
  folders.insert(folders.begin(), {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"});
#endif
  return folders;
}

// Breadth first, so that what the program itself names decides.
class Search {
 public:
  explicit Search(const Environment& environment) : common_(split(environment.get("LD_LIBRARY_PATH"), ':')) {
    for (std::string& folder : system_folders()) common_.push_back(std::move(folder));
  }

  Result<MpiFlavour> run(const fs::path& program) {
    ElfNeeded needed = TRY(read_elf_needed(program));
    for (;;) {
      if (const MpiFlavour found = take(needed); found != MpiFlavour::unknown) return found;
      if (queue_.empty() || seen_.size() > kMaxLibraries) return MpiFlavour::unknown;
      needed = read_elf_needed(queue_.front())
                   .value_or(ElfNeeded{});  // a broken library is the loader's to report
      queue_.pop_front();
    }
  }

  std::optional<fs::path> locate(const std::string& library,
                                 const std::vector<std::string>& own_paths) const {
    if (library.find('/') != std::string::npos) return library;
    std::vector<std::string> folders = own_paths;
    folders.insert(folders.end(), common_.begin(), common_.end());
    for (const std::string& folder : folders) {
      std::error_code none;
      const fs::path file = fs::path(folder) / library;
      if (!folder.empty() && fs::is_regular_file(file, none)) return file;
    }
    return std::nullopt;
  }

 private:
  MpiFlavour take(const ElfNeeded& needed) {
    for (const std::string& library : needed.libraries) {
      const MpiFlavour flavour = flavour_of_name(fs::path(library).filename().string());
      if (flavour != MpiFlavour::unknown) return flavour;
      if (seen_.insert(library).second) find(library, needed.search_paths);
    }
    return MpiFlavour::unknown;
  }

  void find(const std::string& library, const std::vector<std::string>& own_paths) {
    if (const auto file = locate(library, own_paths)) queue_.push_back(*file);
  }

  std::vector<std::string> common_;
  std::set<std::string> seen_;
  std::deque<fs::path> queue_;
};

bool is_script(const fs::path& program) {
  char start[2] = {};
  std::ifstream(program, std::ios::binary).read(start, 2);
  return start[0] == '#' && start[1] == '!';
}

}  // namespace

Result<MpiFlavour> mpi_flavour(const fs::path& program, const Environment& environment) {
  if (is_script(program)) return MpiFlavour::unknown;
  return Search(environment).run(program);
}

bool finds_its_libraries(const fs::path& program, const Environment& environment) {
  const auto needed = read_elf_needed(program);
  const Search search(environment);
  return needed && std::all_of(needed->libraries.begin(), needed->libraries.end(), [&](const auto& library) {
           return search.locate(library, needed->search_paths).has_value();
         });
}

}  // namespace dlrun
