"""The page of the report: one HTML file that needs nothing else, on a screen, on a phone and on paper, light or
dark."""

from html import escape

_LIGHT = (
    "--bg:#fff;--ink:#1d2430;--soft:#667085;--line:#d7dce4;--panel:#f6f7f9;--good:#0a7d45;--bad:#b42318;--warn:#9a5b00;"
    "--hot:#b42318;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#8a6d00;--c5:#3f8fc5;--c6:#7a4fb5;--c7:#555;"
)
_DARK = (
    "--bg:#12161c;--ink:#e7ebf1;--soft:#9aa5b5;--line:#333b47;--panel:#1a2029;--good:#4ad48c;--bad:#ff8577;--warn:#ffc266;"
    "--hot:#ff6a58;--c0:#56b4e9;--c1:#ff9a4d;--c2:#35d0a2;--c3:#f0a5cd;--c4:#f0e442;--c5:#8fd0ff;--c6:#c3a2ff;--c7:#bbb;"
)
_PARTS = ("#98a2b3", "#7a8aa0", "#3f8fc5", "#c99700", "#2ba27d", "#d55e00", "#c0392b", "#8e5bc4", "#5b6ee1", "#70829a")
_STYLE = (
    f":root{{{_LIGHT}color-scheme:light dark}}@media(prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    f"@media print{{:root{{{_LIGHT}color-scheme:light}}}}"
    + "".join(f".p{n}{{--p:{colour}}}" for n, colour in enumerate(_PARTS))
    + "".join(f".c{n}{{--c:var(--c{n})}}" for n in range(8))
    + """
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:1rem;background:var(--bg);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}p{margin:.4rem 0}.soft{color:var(--soft);font-size:.9rem}
.verdict{border-left:6px solid var(--good);background:var(--panel);padding:.8rem 1rem;margin:1rem 0;border-radius:4px}
.verdict b{font-size:1.15rem;color:var(--good)}
.verdict.bad{border-color:var(--bad)}.verdict.bad b{color:var(--bad)}
.verdict.part{border-color:var(--warn)}.verdict.part b{color:var(--warn)}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0}
.card{background:var(--panel);border-radius:4px;padding:.5rem .7rem}
.card span{display:block;color:var(--soft);font-size:.8rem}.card b{font-size:1.15rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:1rem;align-items:start}
figure{margin:0;background:var(--panel);border-radius:4px;padding:.6rem;break-inside:avoid}
figcaption{font-weight:600;font-size:.95rem;margin-bottom:.3rem}svg{display:block;width:100%;height:auto}
svg text{font-size:12px;fill:var(--soft)}.tick.x{text-anchor:middle}.tick.y,.row{text-anchor:end}
svg text.row,svg text.name{fill:var(--ink)}svg text.cell{text-anchor:middle;fill:var(--ink);font-size:11px}
svg text.cell.light{fill:var(--bg)}
.grid{stroke:var(--line);stroke-width:1}.base{stroke:var(--soft);stroke-width:1}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}.line.dashed{stroke-dasharray:5 4;stroke-width:1.5}
.fill{fill:var(--c);fill-opacity:.13;stroke:none}.dot{fill:var(--c)}.dot.hollow{fill:none;stroke:var(--c);stroke-width:2}
.mark line{stroke:var(--bad);stroke-dasharray:3 3}svg .mark text{fill:var(--bad);font-size:11px}
.bar{fill:var(--p)}.field{fill:var(--line);fill-opacity:.35}.heat{fill:var(--hot)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem .9rem;font-size:.82rem;color:var(--soft);margin-top:.3rem}
.key i{display:inline-block;width:.9em;height:.9em;margin-right:.35em;vertical-align:-.1em;border-radius:2px;
background:var(--c,var(--p))}
.key i.dots{background:none;border:2px solid var(--c);border-radius:50%}
.key i.dashed{height:0;border-top:2px dashed var(--c);background:none;vertical-align:.25em}
.wide{overflow-x:auto;margin:.5rem 0}table{border-collapse:collapse;font-size:.85rem;min-width:40%}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--soft);font-weight:600}
td:last-child{white-space:normal}details{margin:.6rem 0}summary{cursor:pointer;color:var(--soft)}
pre{background:var(--panel);padding:.7rem;overflow-x:auto;font-size:.8rem;border-radius:4px;white-space:pre-wrap}
ul{padding-left:1.2rem;margin:.4rem 0}.worse{color:var(--bad)}.better{color:var(--good)}
@media(max-width:600px){body{padding:.6rem}svg text{font-size:15px}svg text.cell,svg .mark text{font-size:13px}
figure{padding:.4rem}}
@media print{body{max-width:none;font-size:11pt}.wide{overflow:visible}details>*{display:block}
figure,.card,.verdict{border:1px solid var(--line)}}
"""
)


def page(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


def cards(facts: list[tuple[str, str]]) -> str:
    inside = "".join(
        f'<div class="card"><span>{escape(name)}</span><b>{escape(value)}</b></div>' for name, value in facts
    )
    return f'<div class="cards">{inside}</div>'


def box(kind: str, headline: str, lines: list[str]) -> str:
    """``kind``: good, bad or part (something is missing)."""
    told = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f'<div class="verdict {kind}"><b>{escape(headline)}</b>{told}</div>'
