#!/usr/bin/env python3
"""Every line of cases.jsonl. A case is compared by the kind_*.py that takes it, or covered.json names the test that
shows it ("tests/path::name of the test", which must be there). What has neither is printed as "not yet"."""

import importlib, json, os, pathlib, sys

HERE = pathlib.Path(__file__).parent
TOP = HERE.parent.parent
COMPLETE = ("slurm_hostlist", "hostfile")  # every case of these kinds is shown


def missing_test(place):
    path, _, name = place.partition("::")
    file = TOP / path
    if not file.is_file():
        return f"{path} is not there"
    return "" if name and name in file.read_text() else f"{path} has no test {name!r}"


def main():
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    kinds = [importlib.import_module(path.stem) for path in sorted(HERE.glob("kind_*.py"))]
    cases = [json.loads(line) for line in (HERE / "cases.jsonl").read_text().splitlines()]
    covered = json.loads((HERE / "covered.json").read_text())
    wrong = [f"covered.json: {id} is no case" for id in covered.keys() - {case["id"] for case in cases}]
    shown, later = 0, []
    for case in cases:
        answers = [answer for kind in kinds if (answer := kind.check(case, os.environ["DLRUN"])) is not None]
        if case["id"] in covered:
            answers.append(missing_test(covered[case["id"]]))
        wrong += [f"{case['id']}: {answer}" for answer in answers if answer]
        shown += bool(answers)
        if not answers:
            later.append(case["id"])
            if case["kind"] in COMPLETE:
                wrong.append(f"{case['id']}: neither compared nor covered")
    print(f"{shown} of {len(cases)} cases are shown; not yet {len(later)}: {' '.join(later)}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong or not shown else 0


sys.exit(main())
