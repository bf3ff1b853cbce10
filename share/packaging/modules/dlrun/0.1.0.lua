-- Lmod module file of dlrun. Copy it to MODULEPATH/dlrun/VERSION.lua beside an installation, and set root.
help([[dlrun launches distributed training jobs: one job file, every scheduler, every MPI. man dlrun; dlrun --help]])
whatis("Name: dlrun")
whatis("Version: " .. myModuleVersion())
whatis("Description: launcher and runtime for distributed training")

local root = pathJoin("/apps/dlrun", myModuleVersion())

conflict("dlrun")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
-- A trailing empty part keeps the system's own pages.
append_path("MANPATH", "")
