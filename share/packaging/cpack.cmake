# Packages by CPack: `cpack -G DEB` in a build folder. A build on Debian depends on the libraries it is linked to; the tarball's
# build has them inside, so its package installs on every Debian and Ubuntu with glibc 2.31.
set(CPACK_PACKAGE_NAME dlrun)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The dlrun authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher and runtime for distributed training")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)  # else it is dpkg's of this system
endif()
if(DLRUN_BESIDE)
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.31), libstdc++6 (>= 9), libgcc-s1")
else()
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
# What plug-ins are linked to is found at run time or absent without harm, so it is not a dependency.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin, mpich, libpmix2, slurm-client")
include(CPack)
