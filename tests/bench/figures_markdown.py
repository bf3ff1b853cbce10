"""Figures of a benchmark, as it wrote them with --json, as a Markdown table. Pure."""
import re

HEAD = "| figure | peer | dlrun | ratio |\n|---|---|---|---|"


def quantity(value, unit):
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def source(content):
    """When and where: of gpu_scaling's files; empty where the file does not tell."""
    if "card" not in content:
        return ""
    cards = f"{content['cards']} x {content['card']}" if content["cards"] else "no GPU"
    torch = f", PyTorch {content['torch']}" if "torch" in content else ""
    return f"On {cards}, driver {content['driver']}{torch}, {content['date']}:"


def row(figure, mark_missed):
    missed = f" (missed: {figure['target']})" if mark_missed and figure["met"] is False else ""
    ratio = "-" if figure["ratio"] is None else f"{figure['ratio']:.2f}"
    peer, ours = (quantity(figure[side], figure["unit"]) for side in ("peer", "ours"))
    cells = (figure["name"].replace("|", "\\|"), peer, ours + missed, ratio)
    return f"| {' | '.join(cells)} |"


def markdown(content, only="", mark_missed=False):
    """The lines of the table of one file."""
    head = [source(content), ""] if source(content) else []
    rows = [row(figure, mark_missed) for figure in content["figures"] if re.search(only, figure["name"])]
    dropped = "; ".join(entry["point"] for entry in content.get("dropped", []))
    return [*head, HEAD, *rows, *(["", f"Not measured: {dropped}."] if dropped and mark_missed else [])]
