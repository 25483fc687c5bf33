"""How the report looks: calm on a wide screen, and on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { --ink: #1d2329; --soft: #5c6670; --rule: #d9dee3; --faint: #f4f6f8; --accent: #0b5c8f; }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; color: var(--ink); background: #fff; font: 16px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif;
  display: grid; grid-template-columns: 15rem minmax(0, 76rem); column-gap: 2.5rem; }
nav { position: sticky; top: 0; align-self: start; height: 100vh; overflow-y: auto; padding: 3.2rem 1.2rem 2rem;
  background: var(--faint); border-right: 1px solid var(--rule); font-size: .9rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { margin: .35rem 0; }
main { padding: 2.5rem 2rem 5rem 0; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 1rem; font-weight: 650; }
h2 { font-size: 1.35rem; margin: 3.2rem 0 .8rem; padding-top: .6rem; border-top: 1px solid var(--rule); font-weight: 650; }
h3 { font-size: 1.02rem; margin: 0 0 .6rem; font-weight: 650; }
p, main > ul, section > ul { max-width: 48rem; }
code { font: .86em/1.4 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; background: var(--faint);
  padding: .08em .3em; border-radius: 3px; }
figure { margin: 1.4rem 0 2.2rem; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 48rem; }
figure.table > figcaption { color: var(--ink); font-weight: 600; margin-bottom: .45rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: .24rem .7rem; text-align: left; vertical-align: baseline; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
th.number { text-align: right; }
th.measure { text-align: center; }
td { border-bottom: 1px solid var(--rule); }
td.number { text-align: right; white-space: nowrap; }
td.number + td.half { padding-left: 0; }
td.half { white-space: nowrap; color: var(--soft); }
td.none { color: var(--soft); font-style: italic; text-align: center; }
td.text:first-child { white-space: nowrap; }
td.code { min-width: 16rem; overflow-wrap: anywhere; }
td.code code { background: none; padding: 0; color: var(--soft); }
td.code span { white-space: nowrap; }
td.strong, td.strong + td.half { font-weight: 700; color: var(--ink); }
tr.group th { padding-top: 1rem; border-bottom: 1px solid var(--ink); font-weight: 650; }
tbody tr:hover td { background: var(--faint); }
ul.notes { margin: .6rem 0 0; padding-left: 1.1rem; color: var(--soft); font-size: .88rem; max-width: 60rem; }
figcaption code { background: none; padding: 0; }
.picture svg { max-width: 100%; height: auto; display: block; margin-bottom: .5rem; }
@media (max-width: 62rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--rule); padding: 1rem 1.2rem; }
  nav li { display: inline-block; margin: .15rem .9rem .15rem 0; }
  main { padding: 1.5rem 1.2rem 3rem; }
}
@media print {
  @page { size: A4; margin: 14mm 13mm; }
  body { display: block; font-size: 9.5pt; line-height: 1.4; }
  nav { position: static; height: auto; padding: 0 0 4mm; background: none; border: 0; border-bottom: 1px solid var(--rule); }
  nav li { display: inline-block; margin: 0 5mm 0 0; }
  a { color: inherit; }
  main { padding: 4mm 0 0; }
  h2 { margin-top: 8mm; break-after: avoid; }
  h3, figure.table > figcaption, tr.group { break-after: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 7.6pt; }
  th, td { padding: .6mm 1mm; }
  thead { display: table-header-group; }
  tr, figure.picture, li { break-inside: avoid; }
  td.code { min-width: 0; }
  td.code code { font-size: 6pt; }
  figcaption, ul.notes { font-size: 8.2pt; }
  figcaption code { background: none; padding: 0; }
.picture svg { width: 100%; max-width: 178mm; }
}
"""
"""The style sheet: no font, image or script comes from elsewhere."""
