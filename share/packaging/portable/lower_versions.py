#!/usr/bin/env python3
"""lower_versions.py LIBRARY LIMIT...: an ELF library (64-bit, little-endian) no longer asks for versions of symbols that are newer
than LIMIT, such as GLIBC_2.31: it takes those symbols as the system has them.

glibc 2.34 gave symbols of libpthread and libdl a new version and changed nothing else about them, so a library built on Debian 12
runs on Debian 11 once it does not ask for that version. What an older system lacks altogether must come from elsewhere
(absent.c). Prints the symbols, so that a new one among them is seen."""
import struct
import sys

VERSYM, VERNEED, DYNSYM, GLOBAL = 0x6FFFFFFF, 0x6FFFFFFE, 11, 1


def number(version):
    return tuple(int(part) for part in version.split("."))


def is_newer(name, limits):
    return any(name.startswith(kind + "_") and number(name[len(kind) + 1:]) > limit for kind, limit in limits)


class Library:
    def __init__(self, data):
        self.data = data
        table, = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        fields = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
        self.sections = [{"type": f[1], "offset": f[4], "size": f[5], "link": f[6]} for f in fields]

    def section(self, kind):
        return next(section for section in self.sections if section["type"] == kind)

    def text(self, strings, offset):
        start = strings["offset"] + offset
        return self.data[start:self.data.index(b"\0", start)].decode()

    def drop_needs(self, limits):
        """Takes the entries out of their lists; answers with the indices that symbols had for them."""
        needs = self.section(VERNEED)
        strings = self.sections[needs["link"]]
        dropped, at = set(), needs["offset"]
        while True:
            _, count, _, first, following = struct.unpack_from("<HHIII", self.data, at)
            kept, entry = [], at + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, entry)
                if is_newer(self.text(strings, name), limits):
                    dropped.add(index)
                else:
                    kept.append(entry)
                entry += step
            if not kept:
                raise SystemExit("lower_versions: error: nothing would be left of a library's versions")
            struct.pack_into("<H", self.data, at + 2, len(kept))
            struct.pack_into("<I", self.data, at + 8, kept[0] - at)
            for entry, after in zip(kept, kept[1:] + [kept[-1]]):
                struct.pack_into("<I", self.data, entry + 12, after - entry)
            if following == 0:
                return dropped
            at += following

    def clear(self, indices):
        """Symbols of these versions have none; answers with their names."""
        versions, symbols = self.section(VERSYM), self.section(DYNSYM)
        strings, names = self.sections[symbols["link"]], []
        for i in range(versions["size"] // 2):
            at = versions["offset"] + 2 * i
            if struct.unpack_from("<H", self.data, at)[0] in indices:
                struct.pack_into("<H", self.data, at, GLOBAL)
                names.append(self.text(strings, struct.unpack_from("<I", self.data, symbols["offset"] + 24 * i)[0]))
        return names


def main(path, *limits):
    with open(path, "r+b") as file:
        library = Library(bytearray(file.read()))
        split = [limit.rsplit("_", 1) for limit in limits]
        names = library.clear(library.drop_needs([(kind, number(version)) for kind, version in split]))
        file.seek(0)
        file.write(library.data)
    print("\n".join(sorted(names)))


main(*sys.argv[1:])
