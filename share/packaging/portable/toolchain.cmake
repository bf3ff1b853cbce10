# A build for the tarball: this machine's g++ against the sysroot that sysroot.sh makes (glibc 2.31, every other library
# static or beside the programs). tarball.sh sets DLRUN_SYSROOT in the environment.
set(root $ENV{DLRUN_SYSROOT})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_SYSROOT ${root})
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(CMAKE_C_FLAGS_INIT "-march=x86-64-v2 -mtune=generic")
set(CMAKE_CXX_FLAGS_INIT "-march=x86-64-v2 -mtune=generic")
# The C++ library is inside, and what is inside stays hidden: libraries of the site bring their own.
# Before the compiler's own folders, which are this system's.
set(first "-B${root}/usr/lib/x86_64-linux-gnu -L${root}/usr/lib/x86_64-linux-gnu -L${root}/lib/x86_64-linux-gnu")
set(hidden "${first} -static-libgcc -static-libstdc++ -Wl,--exclude-libs,ALL -Wl,--as-needed")
# DT_RPATH, not DT_RUNPATH: it also finds what the libraries beside the programs need.
set(beside "-Wl,--disable-new-dtags")
foreach(kind EXE MODULE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "${hidden} ${beside}")
endforeach()
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/dlrun/beside")
set(inside "${root}/absent/absent.o -lcrypto -lz -lpthread -ldl -lrt -lm")
set(CMAKE_C_STANDARD_LIBRARIES ${inside})
set(CMAKE_CXX_STANDARD_LIBRARIES ${inside})
set(DLRUN_FMT fmt::fmt-header-only)
