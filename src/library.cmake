# How the libraries of the tree are made: a folder is a library, and every source in it belongs to it, so that adding a file
# touches no list. Ninja looks again at the folders at each build (CONFIGURE_DEPENDS).
#
# In unity builds several sources are one translation unit. Names in unnamed namespaces are each file's own business, so sources
# that have one in common are put into different units (unity_groups.awk); nothing else about a source is touched.

# dlrun_sources(VARIABLE [FOLDERS FOLDER...] [EXCEPT FILE...]): the sources of this folder and of the FOLDERS below it.
function(dlrun_sources variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;EXCEPT")
  set(patterns *.cpp)
  foreach(folder ${arg_FOLDERS})
    list(APPEND patterns ${folder}/*.cpp)
  endforeach()
  file(GLOB found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  if(arg_EXCEPT)
    list(REMOVE_ITEM found ${arg_EXCEPT})
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# dlrun_library(NAME [FOLDERS FOLDER...] [EXCEPT FILE...]): a static library of this folder's sources.
function(dlrun_library name)
  dlrun_sources(sources ${ARGN})
  add_library(${name} STATIC ${sources})
  dlrun_unity_groups(${name})
endfunction()

# dlrun_unity_groups(TARGET): which of its sources may be one translation unit. Does nothing unless this is a unity build.
function(dlrun_unity_groups target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(NOT sources)
    return()
  endif()
  execute_process(COMMAND awk -v most=${CMAKE_UNITY_BUILD_BATCH_SIZE} -f ${PROJECT_SOURCE_DIR}/src/unity_groups.awk ${sources}
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${groups}")
  foreach(line ${lines})
    string(REGEX MATCH "^([0-9]+) (.*)$" _ "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${target}${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
