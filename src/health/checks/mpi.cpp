// Which MPI libraries a node has where the loader finds them, by their names: Open MPI, and MPICH with those
// that share its names. And whether dlrun's plug-in for PMIx finds the libraries that it needs.
#include <array>
#include <filesystem>

#include "src/base/install.hpp"
#include "src/base/strings.hpp"
#include "src/health/compare.hpp"
#include "src/process/mpi_flavour.hpp"

namespace dlrun::health {
namespace {

namespace fs = std::filesystem;

struct Library {
  std::string_view flavour, name;
};
constexpr std::array<Library, 4> kLibraries{{{"openmpi", "libmpi.so.40"},
                                             {"openmpi", "libmpi.so.20"},
                                             {"mpich", "libmpich.so.12"},
                                             {"mpich", "libmpi.so.12"}}};

std::vector<std::string> folders(const Environment& environment) {
  std::vector<std::string> out = split(environment.get("LD_LIBRARY_PATH"), ':');
  out.insert(out.end(), {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                         "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib"});
  std::erase(out, "");
  return out;
}

std::string path_of(std::string_view library, const Environment& environment) {
  std::error_code problem;
  for (const std::string& folder : folders(environment))
    if (const fs::path path = fs::path(folder) / library; fs::exists(path, problem)) return path.string();
  return {};
}

Json measure(const Question& question) {
  Json out{{"openmpi", nullptr}, {"mpich", nullptr}, {"pmix", false}};
  for (const Library& library : kLibraries) {
    Json& place = out[std::string(library.flavour)];
    if (const std::string path = path_of(library.name, question.environment);
        place.is_null() && !path.empty())
      place = path;
  }
  if (const auto own = this_installation())
    out["pmix"] = finds_its_libraries(own->plugins / "libdlrun-pmix.so", question.environment);
  return out;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out = different(samples, "openmpi", "Open MPI");
  append(out, different(samples, "mpich", "MPICH"));
  append(out, different(samples, "pmix", "dlrun's plug-in for PMIx"));
  return out;
}

}  // namespace

Check mpi_check() {
  return {.name = "mpi", .measure = measure, .judge = judge};
}

}  // namespace dlrun::health
