"""The table of goals as text."""

import os

import cores
import goals
import measures

NOT_MEASURED = "not measured"


def number(value):
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def measured(figure):
    """The median, and between what the rounds lie."""
    text = number(figure["value"])
    if figure["low"] != figure["high"]:
        text += f" ({number(figure['low'])}..{number(figure['high'])})"
    return text


def remark(figure, old):
    parts = [figure.get("missing", ""), figure.get("beside", ""), figure.get("disturbed_run", "")]
    if figure.get("disturbed"):
        parts.append(f"{figure['disturbed']} rounds disturbed")
    if figure.get("disturbed_slices"):
        parts.append(f"{figure['disturbed_slices']} of {figure['slices']} slices disturbed")
    if old:
        parts.append(f"* {old['date']} {old['commit']}")
        parts.append("of an overloaded machine" if is_overloaded(old) else "")
    return "; ".join(part for part in parts if part)


def cells(goal, told, before):
    """-> the columns of a row: what, measured, must, wanted, verdict, remark, conditions"""
    figure, old = told["figures"].get(goal.measure), None
    if figure is None and before:
        figure, old = before["figures"].get(goal.measure), before
    limits = [number(goal.must), number(goal.wanted)]
    if figure is None:
        return [goal.what, NOT_MEASURED, *limits, goals.UNJUDGED, "", ""]
    if "missing" in figure:
        return [goal.what, NOT_MEASURED + ("*" if old else ""), *limits, goals.UNJUDGED,
                remark(figure, old), ""]
    verdict = "disturbed" if figure.get("disturbed_run") else goal.verdict(figure)
    return [goal.what, measured(figure) + ("*" if old else ""), *limits, verdict,
            remark(figure, old), figure.get("conditions", "")]


def is_overloaded(told):
    """Whether others had a good part of the machine: before it began, or meanwhile."""
    return (told.get("core_share", 1) < measures.CORE_SHARE or
            told.get("load_before", 0) > told.get("cores", os.cpu_count()))


def load_of_machine(told):
    """-> lines that say whether the machine was free for this"""
    count = told.get("cores", os.cpu_count())
    lines = [f"load {told['load_before']:.1f} before, {told['load_after']:.1f} after, on "
             f"{count} cores; {told['rounds']} rounds, {told['disturbed_rounds']} of them disturbed",
             *cores.text(told)]
    share = told.get("core_share", 1)
    if is_overloaded(told):
        lines.append(f"THE MACHINE IS OVERLOADED: rnic-perf got {share:.0%} of its core. Best "
                     "windows and instructions stand; means, tails and two cores do not.")
    return lines


HEAD = ["what", "measured", "must", "wanted", "verdict", "beside it", "with"]


def text(rows, told, before, quick=False):
    lines = [HEAD] + [cells(goal, told, before) for goal in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    out = [f"{told['machine']}", f"commit {told['commit']}, {told['date']}, "
           f"{told['seconds']} s", *load_of_machine(told), ""]
    for line in lines:
        out.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    out.append("")
    if before:
        out.append(f"* from the last whole run: {before['date']}, commit {before['commit']}, "
                   f"{before['machine']}")
    elif quick:
        out.append("Rows without a figure need ./scripts/bench, which takes longer.")
    return "\n".join(out)
