"""out/bench/report.html: the table of goals and the plots, in one file that needs no other."""

import html

import goals
import sweeps
import table

STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 1280px; margin: 2em auto; padding: 0 1em;
       color: #222; background: #fff; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: 3px 8px; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
td.figure { white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.bad td.verdict { color: #a02020; font-weight: bold; }
tr.good td.verdict { color: #1f7a34; font-weight: bold; }
tr.none { color: #777; }
.plots { display: flex; flex-wrap: wrap; gap: 1em; }
.plots svg { border: 1px solid #eee; max-width: 100%; height: auto; }
"""
KINDS = {goals.SHORT: "bad", goals.MET: "good", goals.SPARED: "good", goals.WANTED: "good"}


def row_of(columns):
    kinds = ["", "figure", "figure", "figure", "verdict", "", ""]
    cells = "".join(f'<td class="{kind}">{html.escape(column.strip())}</td>'
                    for kind, column in zip(kinds, columns))
    return f'<tr class="{KINDS.get(columns[4], "none")}">{cells}</tr>'


def page(rows, told):
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in table.HEAD)
    body = "\n".join(row_of(table.cells(goal, told, None)) for goal in rows)
    loads = "".join(f"<p>{html.escape(line)}</p>" for line in table.load_of_machine(told))
    peers = "".join(f"<li>{html.escape(line)}</li>" for line in told.get("peers", []))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>softrnic: figures</title>
<style>{STYLE}</style></head><body>
<h1>softrnic: figures</h1>
<p>{html.escape(told["machine"])}; commit {html.escape(told["commit"])}, {told["date"]},
{told["seconds"]} s. How each is measured, and what bounds it: docs/performance.md.</p>
{loads}
<table><tr>{heads}</tr>
{body}
</table>
<h2>Peers</h2><ul>{peers}</ul>
<h2>Plots</h2>
<div class="plots">
{"".join(sweeps.plots(told).values())}
</div>
</body></html>
"""
