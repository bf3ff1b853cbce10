#!/usr/bin/python3
"""exit_codes.py: the table of exit codes in man/dlrun.1 is the one of src/base/exit_code.hpp, number by number and
word by word. `--self-test` shows that a changed number, a changed word and a missing row are each noticed."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def in_header(text):
    table = re.search(r"enum class ExitCode.*?\{(.*?)\};", text, re.S).group(1)
    rows = {}
    for name, number, comment in re.findall(r"(\w+) = (\d+),?[ \t]*(?://[ \t]*([^\n]*))?", table):
        rows[int(number)] = comment or name
    return rows


def in_page(text):
    section = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh ", text, re.S | re.M).group(1)
    found = re.findall(r"^\.It (?:Sy )?(\d+)\n(.*?)(?=^\.(?:It|El))", section, re.S | re.M)
    return {int(number): " ".join(words.split()).rstrip(".") for number, words in found}


def differences(header, page):
    for number in sorted(header.keys() | page.keys()):
        if header.get(number) != page.get(number):
            yield f"exit code {number}: exit_code.hpp says {header.get(number)!r}, dlrun.1 says {page.get(number)!r}"


def self_test(header, page):
    for name, changed in {
        "a changed number": {n + (n == 64) * 100: t for n, t in page.items()},
        "a changed word": {**page, 64: "good usage"},
        "a missing row": {n: t for n, t in page.items() if n != 75},
    }.items():
        if not list(differences(header, changed)):
            yield f"{name} goes unnoticed"


def main(arguments):
    header = in_header((ROOT / "src/base/exit_code.hpp").read_text())
    page = in_page((ROOT / "man/dlrun.1").read_text())
    if len(header) < 2:
        print("src/base/exit_code.hpp: no table found")
        return 1
    check = self_test if arguments == ["--self-test"] else differences
    problems = list(check(header, page))
    print("\n".join(problems) or f"{len(header)} exit codes agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
