#!/usr/bin/python3
"""terms.py [ROOT]: finds words that the project has replaced by the words of its field (share/doc/GLOSSARY.md) in
identifiers, comments, string literals, man pages, README and share/. Prints FILE:LINE for each; exits 1 if there is one.

Words that are still used are counted per folder in terms_not_yet.txt. A count must not grow, and a folder that has become
clean leaves the list: `terms.py --update` writes the counts of today. `terms.py --self-test` feeds every row a text that
must be found, and texts that must not."""
import collections
import dataclasses
import fnmatch
import itertools
import pathlib
import re
import sys
import tempfile
import tokenize

HERE = pathlib.Path(__file__).resolve().parent
NOT_YET = HERE / "terms_not_yet.txt"


@dataclasses.dataclass(frozen=True)
class Term:
    name: str
    use: str
    code: str = ""  # a pattern over identifiers: the code without comments and string literals
    text: str = ""  # a pattern over comments, string literals, man pages and other texts
    example: str = ""  # that must be found: code, or text after "// "


UNIT = (r"(node|rank|second|step|line|pixel|minute|hour|day|GPU|channel|class|image|epoch|flavour|layer|scheduler|message|command|"
        r"file|folder|role|task|slot|host|batch|device|process|launcher|sample|job|link|row|element)")
COUNTED = (r"(one|two|three|four|once|twice|\d+|images|samples|bytes|ranks|agents|lines|tasks|files|times|slots|commands|programs|"
           r"pixels|steps|cores|GPUs|numbers?|calls|messages|threads)")

TERMS = [
    Term("slope", "gradient; grad_input, grad_weight (a slope is leaky ReLU's parameter)", r"(?i)slope", r"(?i)\bslopes?\b",
         "float y_slope;"),
    Term("winners", "argmax, indices", r"(?i)winner", r"(?i)\bwinners?\b", "auto winners = 1;"),
    Term("momenta", "momentum, exp_avg", r"momenta|keep_square", r"\bmomenta\b", "float* momenta;"),
    Term("gradient modes", "GRAD_WRITE, GRAD_ACCUMULATE, FROZEN", r"\b\w*_?(WRITES|ADDS|HELD)\b", "", "int m = WRITES;"),
    Term("device modes", "ON_DEVICE, STAGED_THROUGH_HOST", r"\b\w*_?(STAY|TRAVEL)\b", "", "int m = TRAVEL;"),
    Term("lane", "stream (lanes are those of SIMD)", r"\bLane\b|side_lane", r"\bside lanes?\b", "Lane l;"),
    Term("both", "host/device function", r"DLRUN_CUDA_BOTH", r"both\.hpp", "DLRUN_CUDA_BOTH int f();"),
    Term("Made", "OperatorPtr", r"\bMade\b", "", "Made m;"),
    Term("moment", "time (moments are Adam's)", r"\b[Mm]oments?\b|_moments?_?\b", "", "int moment = 0;"),
    Term("flat plan", "CudaPlan, lower()", r"FlatPlan|Flattener|flat_plan", r"\bflat plan", "FlatPlan p;"),
    Term("deviation", "init_std, init_bound", r"first_bound|\bdeviation\b", "", "float deviation;"),
    Term("pixel meaning", "InputScaling", r"PixelMeaning|meaning_of", "", "PixelMeaning m;"),
    Term("Wanted", "Target", r"\bWanted\b", "", "Wanted w;"),
    Term("watched", "validation", r"\bwatched_|\bwatch_rows", "", "int watched_;"),
    Term("Stretch", "Interval", r"\bStretch\b", "", "Stretch s;"),
    Term("sum algorithm", "allreduce and the name of its algorithm",
         r"(?i)\b(halving|exchange|served|star|packed|group)_sum\b|SumAlgorithm|DeviceSum|NamedSum|StarPlace|star_communicator",
         "", "halving_sum(x);"),
    Term("meet", "barrier; rendezvous; find each other", r"(?i)\bmeet\b|meeting|_meet\b", r"(?i)\bmeet(s|ing)?\b", "meet();"),
    Term("wire", "dtype (of communication); bootstrap", r"(?i)(?<![a-z])wir(e|es|ing)(?![a-z])", r"(?i)(?<!-)\bwires?\b(?!.protocol|-up)",
         "Wire wire;"),
    Term("look", "probe", r"\blook(s|ed)?\b|Look\b|_looks?\b|look_", "", "RankLook look;"),
    Term("farewell", "finalize, disconnect", r"(?i)farewell", r"(?i)\bfarewell", "int kFarewell;"),
    Term("crew", "AgentSet, agents", r"(?i)crew", r"(?i)\bcrew", "Crew c;"),
    Term("surroundings", "context, environment", r"(?i)surroundings|\bAround\b", r"(?i)\bsurroundings\b", "Surroundings s;"),
    Term("patience", "timeout", r"(?i)patience", r"(?i)\bpatience\b", "int patience;"),
    Term("hand in", "submit", r"(?i)hand(s|ed|ing)?_?in\b|handed_on|hand_in",
         r"(?i)\bhand(s|ed|ing)?[ -]in\b|\bhand(s|ed)? (it|them|jobs?|the (job|script|next one)) (in|to the scheduler)\b", "hand_in(job);"),
    Term("way", "launcher; mode", r"\bWays?\b|ChainWay|kWays?\b|\bway\b", r"\b(way|ways) (on|in)to (a node|nodes)\b|\bthe (lsf|slurm|ssh|pbs|sge|flux|mpiexec|local) way\b",
         "ChainWay w;"),
    Term("wish", "request", r"(?i)wish", r"(?i)\bwish", "wish_stop();"),
    Term("vanish", "lost", r"(?i)vanish", r"(?i)\bvanish", "VanishedRun v;"),
    Term("blame", "first failure, failing rank", r"(?i)culprit|blame", r"(?i)\b(culprit|blam(e|es|ed|ing))\b", "Culprit c;"),
    Term("keeper", "reaper", r"(?i)keeper", r"(?i)\bkeeper", "int keeper;"),
    Term("settle", "init, resolve, finalize; the word of what happens", r"(?i)settle", r"(?i)\bsettl(e|es|ed|ing)\b", "settle_in();"),
    Term("deal", "distribute cyclically", r"\bDealer\b|\bdeal_|\bdealt", r"\bdealt out\b|\bdeals? out\b", "deal_tasks();"),
    Term("errand", "request, event", r"(?i)errand|SshNews|\bTeller\b", r"(?i)\berrand", "SshErrand e;"),
    Term("agent card", "AgentIdentity", r"AgentCard", "", "AgentCard c;"),
    Term("born", "bootstrap", r"RankWiring", r"\bborn with\b", "RankWiring w;"),
    Term("prelude", "prolog", r"(?i)prelude", r"(?i)\bpreludes?\b", "Prelude p;"),
    Term("truth", "bool", r"(?i)truth", "", "as_truth(x);"),
    Term("kMost", "kMax", r"\bk(Most|Longest|Deepest|Largest|Widest|Highest)[A-Z]", "", "int kMostLines;"),
    Term("a for per", "per", rf"(?<!_of)(?<!_on)(?<!_is)(?<!within)_an?_{UNIT}\b", rf"(?<![-\w])(?<!than ){COUNTED} an? {UNIT}\b(?! (takes|sees|has|had|holds|needs|gets|can|may|could|that|of))", "int images_a_step;"),
    Term("nothing for unset", "unset, empty, absent", "", r"\b[Nn]othing (where|if|when)\b|(;|//) [Nn]othing:", "// nothing where it is not set"),
    Term("is no for is not", "is not a; the expected value", "", r"' is no\b", "// '{}' is no number"),
    Term("hopeless", "is_permanent; should_retry", r"hopeless|worth_another|looks_back|lights_of_inks", "", "is_hopeless();"),
    Term("engine for launcher", "command launcher; mpi: native", r"EngineTraits|EngineService|EngineLauncher|MpiMode::engine",
         r"\bmpi: engine\b|--mpi engine\b", "EngineTraits t;"),
    Term("sge", "gridengine", r"\bsge\b|(?<![A-Za-z])sge_|make_sge|_sge\b", r"(?<![\w/])sge\b", "make_sge_launcher();"),
    Term("play", "emulate", "", r"\bplay(s|ed|ing)? (several|two|nodes|a node|many)\b|\bplayed by\b", "// two GPUs playing two nodes"),
    Term("carry on", "continue, resume", "", r"\bcarr(y|ies|ied|ying) (\w+ )?on\b", "// it carries on"),
    Term("sent home", "rejected", "", r"\b(sent|send|sends) home\b", "// was sent home"),
    Term("words of a command line", "arguments", "", r"\b[Ww]ords (behind|for its program)|one word too many", "// Words behind --"),
    Term("is none of", "unknown value; expected", "", r"\bis none of\b|\bis nothing that\b|\bno way onto\b", "// 'x' is none of a, b"),
    Term("without a word", "without an error message", "", r"\bwithout a word\b", "// it ended without a word"),
    Term("invented", "hypothetical", r"(?i)invented", r"\binvent(s|ed)?\b", "// invented nodes"),
    Term("share out", "divide, distribute", "", r"\bshare[sd]? out\b", "// is shared out"),
    Term("room", "workspace; folder", r"\broom\(|_room\b", "", "int room();"),
    Term("pace", "step timing", r"\bPace|PaceMeter|\bpace_?\b", r"\ba pace of\b", "PaceMeter p;"),
    Term("star", "tcp (through rank 0)", r"\bstar_|\bStar[A-Z]", "", "star_gather();"),
]

# (term, files, why it is right there).
ALLOWED = [
    ("slope", "runtime/*", r"leaky|relu|activation", "leaky ReLU has a slope"),
    ("slope", "man/dlrun-train.1", r"slope for negative values", "leaky ReLU has a slope"),
    ("slope", "tests/unit/graph/*", r"\bslope\b", "leaky ReLU has a slope"),
    ("slope", "runtime/*", r"spec\.slope|out\.slope|slope >= 0|\bfloat slope\b|\[slope\]|the slope where", "leaky ReLU has a slope"),
    ("sge", "*", r"SGE|/sge|alias|renamed|sge_(execd|qmaster)", "Grid Engine's own names, and the alias for one release"),
    ("sge", "man/dlrun-job.5", r"\.Ic sge$", "the alias for one release"),
    ("sge", "*", r"sge is now called gridengine|find(_scheduler)?\(\"sge\"", "the alias for one release"),
    ("vanish", "*", r'"vanished"', "the ledger of an older dlrun"),
    ("moment", "runtime/*", r"moments? of Adam|Adam.s moments?", "Adam has moments"),
    ("sge", "schedulers/gridengine/*", r'starts_with\("sge "\)', "what its qsub prints"),
    ("wire", "*", r"alias|renamed|old name|old\[|`wire`", "the alias for one release"),
    ("wire", "man/dlrun-train.1", r"\.Ic wire ,$", "the alias for one release"),
    ("wire", "*/train*", r'allreduce[.:] ?[{]?wires?|"wire"|dtype and wire', "the alias for one release"),
    ("engine for launcher", "*", r"launch\.mpi: engine is now called native", "the alias for one release"),
    ("way", "*", r"alias|renamed|chain\.way", "the alias for one release"),
]

CODE = (".cpp", ".hpp", ".c", ".h", ".cu", ".hpp.in")
TEXTS = ["README.md", "man/*", "share/doc/*", "share/examples/*", "share/completions/*", "share/*.sh", "share/python/*", "frameworks/*",
         "templates/*"]
FOLDERS = ["src", "schedulers", "runtime", "tests", "share", "man", "frameworks", "templates"]
SKIP = ["tests/lint/terms*", "tests/golden/*", "tests/recorded/*", "tests/cases/*", "CHANGELOG.md", "*/__pycache__/*"]
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)


def split(text):
    """(code, text): the same lines twice, each with the other part blanked out."""
    return parted(text, [found.span() for found in TOKEN.finditer(text)])


def parted(text, spans):
    def blank(part):
        return re.sub(r"[^\n]", " ", part)
    code, other, at = [], [], 0
    for start, end in spans:
        code += [text[at:start], blank(text[start:end])]
        other += [blank(text[at:start]), text[start:end]]
        at = end
    return "".join(code) + text[at:], "".join(other) + blank(text[at:])


def split_python(text):
    """The same of Python."""
    lines = text.splitlines(keepends=True)
    starts = [0, *itertools.accumulate(map(len, lines))]
    spans = [(starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
             for token in tokenize.generate_tokens(iter(lines).__next__) if token.type in (tokenize.STRING, tokenize.COMMENT)]
    return parted(text, spans)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def parts(path, text):
    """The identifiers and the text of a file."""
    if path.endswith(CODE):
        code, other = split(text)
        return re.sub(r"#\s*include[^\n]*", "", code), other
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python3") or text.startswith("#!/usr/bin/python3"):
        return split_python(text)
    return "", text


def allowed(term, path, line):
    return any(name == term and fnmatch.fnmatchcase(path, files) and re.search(pattern, path + " " + line)
               for name, files, pattern, _ in ALLOWED)


def found_in(path, text):
    """(term, line number, line) of each banned word."""
    code, other = parts(path, text)
    lines = text.split("\n")
    for term in TERMS:
        for pattern, where in ((term.code, code), (term.text, other)):
            for match in re.finditer(pattern, where) if pattern else []:
                number = where.count("\n", 0, match.start())
                if not allowed(term.name, path, lines[number]):
                    yield term, number + 1, lines[number].strip()


def is_script(path):
    return path.suffix in (".py", ".sh") or (not path.suffix and path.read_bytes()[:2] == b"#!")


def files(root):
    for folder in ["README.md", *FOLDERS]:
        top = root / folder
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not matches(name, SKIP) and (name.endswith(CODE) or matches(name, TEXTS) or
                                                              (folder == "tests" and is_script(path))):
                yield name, path


def folder_of(path):
    pieces = path.split("/")
    return "/".join(pieces[:2]) if pieces[0] in ("src", "runtime", "tests", "share", "schedulers") and len(pieces) > 2 else pieces[0]


def count(root):
    """What is found, by (term, folder)."""
    out = collections.defaultdict(list)
    for name, path in files(root):
        seen = set()
        for term, number, line in found_in(name, path.read_text(encoding="utf-8", errors="replace")):
            if (term.name, number) not in seen:
                seen.add((term.name, number))
                out[term.name, folder_of(name)].append(f"{name}:{number}: '{term.name}' -> {term.use}: {line[:100]}")
    return out


def read_not_yet(path):
    rows = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            term, folder, number = (word.strip() for word in line.split("|"))
            rows[term, folder] = int(number)
    return rows


def write_not_yet(path, found):
    rows = sorted((term, folder, len(lines)) for (term, folder), lines in found.items())
    path.write_text("# Words of terms.py that are still used: term | folder | lines. Numbers only fall; terms.py --update writes them.\n" +
                    "".join(f"{term} | {folder} | {number}\n" for term, folder, number in rows))


def problems(found, not_yet):
    for key, lines in found.items():
        if len(lines) > not_yet.get(key, 0):
            yield from lines
            yield f"'{key[0]}' in {key[1]}: {len(lines)} lines, and terms_not_yet.txt allows {not_yet.get(key, 0)}"
    for (term, folder), number in not_yet.items():
        if not found.get((term, folder)):
            yield f"terms_not_yet.txt: '{term}' is gone from {folder}, and {number} lines are allowed: run tests/lint/terms.py --update"


FINE = [  # (path, text): nothing may be found
    ("src/plan/a.cpp", '// The wire protocol of PMI-1; it looks for files, and starts a node.\nint grad_input = argmax(x);\n'),
    ("runtime/cpu/kernels/leaky_relu.cpp", "float slope = 0.2f;  // of leaky ReLU\n"),
    ("man/dlrun.1", "One agent per node. A rank starts a node's part. How many ranks a host takes.\n"),
    ("src/run/a.cpp", 'auto s = "images per second";  // one rank per node, and more than one a node could hold\n'),
    ("src/run/a.cpp", "kill_9_of_a_rank(computes_on_a_device);\n"),
    ("tests/e2e/a.py", 'def f(word):  # it looks for files\n    """This looks like a way on."""\n'),
]


def heard(path, text):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, path)
        file.parent.mkdir(parents=True)
        file.write_text(text)
        return {term for term, _ in count(pathlib.Path(folder))}


def self_test():
    if heard("tests/e2e/a.py", "crew = 1\n") != {"crew"} or heard("tests/e2e/a.py", 'x = """\na crew"""\n') != {"crew"}:
        yield "a word of Python's code or strings is not found"
    for term in TERMS:
        names = heard("src/run/a.cpp", term.example + "\n")
        if term.name not in names:
            yield f"'{term.name}' is not found in: {term.example}"
    for path, text in FINE:
        if names := heard(path, text):
            yield f"found {names} in {path}: {text}"
    found = {("slope", "src/run"): ["a", "b"]}
    for name, not_yet, expected in (("a new word", {}, True), ("more of a word", {("slope", "src/run"): 1}, True),
                                    ("as many as allowed", {("slope", "src/run"): 2}, False),
                                    ("a clean folder in the list", {("slope", "src/run"): 2, ("crew", "src/run"): 1}, True)):
        if bool(list(problems(found, not_yet))) != expected:
            yield f"{name}: {'not noticed' if expected else 'refused'}"


def main(arguments):
    if arguments == ["--self-test"]:
        bad = list(self_test())
        summary = f"{len(TERMS)} terms"
    else:
        found = count(HERE.parents[1])
        if arguments == ["--update"]:
            write_not_yet(NOT_YET, found)
        elif arguments[:1] == ["--list"]:  # a folder, or all: what is still to be replaced
            print("\n".join(line for (_, folder), lines in sorted(found.items()) for line in lines if folder in arguments[1:] or not arguments[1:]))
        bad = list(problems(found, read_not_yet(NOT_YET)))
        clean = len(TERMS) - len({term for term, _ in found})
        summary = f"{len(TERMS)} terms: {clean} are gone, {len(TERMS) - clean} still stand in {sum(map(len, found.values()))} lines"
    print("\n".join([*bad, summary]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
