// Which protocol the builtin runtime's ranks are served: from the plug-ins that this installation has.
#include "src/run/trainer_protocol.hpp"

#include <filesystem>

#include <doctest/doctest.h>

#include "tests/unit/folder.hpp"

namespace dlrun::job {

namespace {

// An installation with some of the built plug-ins.
struct Plugins : test::Folder {
  Installation with(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      std::filesystem::copy_file(std::filesystem::path(PLUGIN_FOLDER) / name, path / name,
                                 std::filesystem::copy_options::overwrite_existing);
    return {.bin = path, .data = path, .plugins = path};
  }
};
constexpr const char *kMpich = kMpichPlugins.front(), *kMpichAbi = kMpichPlugins.back(),
                     *kOpenMpi = kOpenMpiPlugin, *kPmix = "libdlrun-pmix.so";

}  // namespace

TEST_CASE("PMI-1 with MPICH and without any MPI") {
  CHECK(trainer_protocol(4, Plugins().with({kMpich, kOpenMpi, kPmix}), {}) == plan::MpiProtocol::pmi1);
  CHECK(trainer_protocol(4, Plugins().with({}), {}) == plan::MpiProtocol::pmi1);
  CHECK(trainer_protocol(1, Plugins().with({kOpenMpi, kPmix}), {}) == plan::MpiProtocol::pmi1);
}

TEST_CASE("PMIx on several nodes where only Open MPI is there, and can be served") {
  CHECK(trainer_protocol(2, Plugins().with({kOpenMpi, kPmix}), {}) == plan::MpiProtocol::pmix);
  CHECK(trainer_protocol(2, Plugins().with({kOpenMpi}), {}) == plan::MpiProtocol::pmi1);
}

TEST_CASE("an MPICH whose library has another name is an MPICH") {
  const Plugins folder, site;
  const Installation installation = folder.with({kMpichAbi, kOpenMpi, kPmix});
  std::string content = *read_file(installation.plugins / kMpichAbi);
  content.replace(content.find("libmpi.so.12"), 12, "libmpx.so.12");  // Debian 13 has the other one
  folder.write(kMpichAbi, content);
  CHECK(trainer_protocol(2, installation, {}) == plan::MpiProtocol::pmix);
  site.write("libmpx.so.12", "");
  Environment environment;
  environment.set("LD_LIBRARY_PATH", site.path.string());
  CHECK(trainer_protocol(2, installation, environment) == plan::MpiProtocol::pmi1);
}

TEST_CASE("a plug-in whose library is not on this machine is not there") {
  const Plugins folder;
  const Installation installation = folder.with({kMpich, kOpenMpi, kPmix});
  std::string content = *read_file(installation.plugins / kMpich);
  content.replace(content.find("libmpich.so"), 11, "libmpixx.so");
  folder.write(kMpich, content);
  CHECK(trainer_protocol(2, installation, {}) == plan::MpiProtocol::pmix);
}

}  // namespace dlrun::job
